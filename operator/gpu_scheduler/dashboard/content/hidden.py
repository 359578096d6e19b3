"""What a reader who may not see all is shown of nodes: sums of what others hold."""

from collections.abc import Iterable

from msgspec.structs import replace

from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.rows import Device, NodeRow, Share
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.usage.figures import GpuState, held_parts


def nodes_for(picture: Picture, visible: Visible) -> tuple[NodeRow, ...]:
    """The nodes that the reader may see; of others' work what it holds of a device in all."""
    if visible.all:
        return picture.nodes
    if visible.inventory:
        return tuple(_node(node, visible) for node in picture.nodes)
    own = (
        replace(node, devices=tuple(d for d in node.devices if _holds(d, visible)))
        for node in picture.nodes
    )
    return tuple(_node(node, visible) for node in own if node.devices)


def _holds(device: Device, visible: Visible) -> bool:
    return any(
        share.ref is not None and visible.sees(share.ref.namespace) for share in device.shares
    )


def _node(node: NodeRow, visible: Visible) -> NodeRow:
    return replace(node, devices=tuple(_device(device, visible) for device in node.devices))


def _device(device: Device, visible: Visible) -> Device:
    own = [s for s in device.shares if s.ref is not None and visible.sees(s.ref.namespace)]
    others = sum(share.gpus for share in device.shares) - sum(share.gpus for share in own)
    hidden = len(own) < len(device.shares)
    if not hidden:
        return device
    rest = Share(
        ref=None, project="", pod="", gpus=round(others, 3), busy=None, memory_mib=None,
        cap_mib=None, idle_since=None,
    )  # fmt: skip
    # What the device does in all would say what its neighbours do.
    return replace(device, shares=(*own, rest), busy=None, memory_used_mib=None)


def parts_for(picture: Picture, visible: Visible) -> dict[GpuState, float]:
    """Where the GPUs are that the reader may see: all, or those that the own work holds."""
    if visible.all or visible.inventory:
        return {state: picture.parts.get(state, 0.0) for state in GpuState}
    own = (
        share
        for node in picture.nodes
        for device in node.devices
        for share in device.shares
        if share.ref is not None and visible.sees(share.ref.namespace)
    )
    return parts_of(own)


def parts_of(shares: Iterable[Share]) -> dict[GpuState, float]:
    """What held shares do; see ``GpuState``."""
    found = dict.fromkeys(GpuState, 0.0)
    for share in shares:
        idle = share.idle_since is not None
        for state, gpus in held_parts(share.gpus, share.busy, idle=idle):
            found[state] += gpus
    return found
