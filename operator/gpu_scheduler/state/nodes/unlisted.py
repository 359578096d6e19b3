"""Why a node is closed of which somebody holds GPUs, and it is not known which.

Either a pod has them from the device plugin, or a pod of ours holds a device that its node does not
list: its GPUNode is gone, a card was replaced, a label has changed. What is free there is then a
guess, and nobody is placed on a guess.
"""

from collections.abc import Sequence

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.units import gpu_from_milli

Holding = tuple[str, str, int]  # namespace/name of a pod, device, milli


def why_unschedulable(strangers: Sequence[str], lost: Sequence[Holding], listed: int) -> str:
    """The sentence, to follow the node's name.

    Args:
        strangers: pods with GPUs of the device plugin.
        lost: what pods hold of devices that the node does not list.
        listed: how many devices it does list.
    """
    if strangers:
        return f"has GPUs in use by {min(strangers)}, which this scheduler did not place"
    pods = len({pod for pod, _, _ in lost})
    held = [f"{pod} holds {gpu_from_milli(m)} of {_device(d)}" for pod, d, m in sorted(lost)]
    return (
        f"lists {wording.gpu_count(listed)}, but not those of {wording.pods(pods)} "
        f"({wording.names(held)}), and takes no others until its GPUNode or its labels list them "
        "again or these pods are gone"
    )


def _device(name: str) -> str:
    return f"GPU {name}" if name.isdecimal() else name
