"""What of a node the reader may not see, in sums."""

from msgspec.structs import replace

from gpu_scheduler.dashboard.rows import DeviceRow, NodeRow, ShareRow
from gpu_scheduler.dashboard.visible import Visible


def without_others(node: NodeRow, visible: Visible) -> NodeRow:
    """A node; of each device what others hold of it in one."""
    return replace(node, devices=tuple(_device(device, visible) for device in node.devices))


def _device(device: DeviceRow, visible: Visible) -> DeviceRow:
    own = [s for s in device.shares if s.ref is not None and visible.sees(s.ref.namespace)]
    others = sum(share.gpus for share in device.shares) - sum(share.gpus for share in own)
    hidden = len(own) < len(device.shares)
    if not hidden:
        return device
    rest = ShareRow(
        ref=None, project="", pod="", gpus=round(others, 3), busy=None, memory_mib=None,
        cap_mib=None, idle_since=None,
    )  # fmt: skip
    # What the device does in all would say what its neighbours do.
    return replace(device, shares=(*own, rest), busy=None, memory_used_mib=None, celsius=None)
