"""What a reader who may not see all is shown of nodes: sums of what others hold."""

from collections.abc import Iterable

from msgspec.structs import replace

from gpu_scheduler.dashboard.others import without_others
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.rows import DeviceRow, NodeRow, ShareRow
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.usage.figures import GpuState, held_parts


def nodes_for(picture: Picture, visible: Visible) -> tuple[NodeRow, ...]:
    """The nodes that the reader may see; of others' work what it holds of a device in all."""
    if visible.namespaces is None:
        return picture.nodes
    own = _with_own(picture, visible)
    if visible.inventory:
        shown = list(picture.hidden_nodes)
        for place in own:
            shown[place] = without_others(picture.nodes[place], visible)
        return tuple(shown)
    return tuple(without_others(_held(picture.nodes[place], visible), visible) for place in own)


def node_for(picture: Picture, visible: Visible, name: str) -> NodeRow | None:
    """One of them; None: there is no such node, or the reader may not see it."""
    node = next((each for each in picture.nodes if each.name == name), None)
    if node is None or visible.namespaces is None:
        return node
    shown = node if visible.inventory else _held(node, visible)
    return without_others(shown, visible) if shown.devices else None


def _held(node: NodeRow, visible: Visible) -> NodeRow:
    """With the devices of which the reader's work holds something, and no other."""
    return replace(node, devices=tuple(d for d in node.devices if _holds(d, visible)))


def nodes_with(picture: Picture, visible: Visible, namespace: str) -> tuple[NodeRow, ...]:
    """Those on which work of one namespace is, which the reader may see."""
    found = (picture.nodes[place] for place in sorted(picture.nodes_of.get(namespace, ())))
    return tuple(node if visible.all else without_others(node, visible) for node in found)


def _with_own(picture: Picture, visible: Visible) -> list[int]:
    """The places of nodes on which the reader has work, in their order."""
    by_namespace = picture.nodes_of
    names = visible.namespaces or ()
    return sorted({place for name in names for place in by_namespace.get(name, ())})


def _holds(device: DeviceRow, visible: Visible) -> bool:
    return any(
        share.ref is not None and visible.sees(share.ref.namespace) for share in device.shares
    )


def parts_for(picture: Picture, visible: Visible) -> dict[GpuState, float]:
    """Where the GPUs are that the reader may see: all, or those that the own work holds."""
    if visible.all or visible.inventory:
        return {state: picture.parts.get(state, 0.0) for state in GpuState}
    own = (
        share
        for place in _with_own(picture, visible)
        for device in picture.nodes[place].devices
        for share in device.shares
        if share.ref is not None and visible.sees(share.ref.namespace)
    )
    return parts_of(own)


def parts_of(shares: Iterable[ShareRow]) -> dict[GpuState, float]:
    """What held shares do; see ``GpuState``."""
    found = dict.fromkeys(GpuState, 0.0)
    for share in shares:
        idle = share.idle_since is not None
        for state, gpus in held_parts(share.gpus, share.busy, idle=idle):
            found[state] += gpus
    return found
