"""What a context takes on a device before anything is allocated, learnt from processes there.

libgpucap charges each new context this much until the process itself was measured, so a figure that
is too high refuses contexts and one that is too low lets a process hold more for a few seconds. The
ledgers that it is measured against are the tenants' own files: so one figure per pod, the median
over the last pods, and never more than libgpucap would charge without it. It holds for the driver
that is loaded, as this memory does: the agent keeps its driver's library until it ends.
"""

from statistics import median_high

from gpu_scheduler.core.model.units import MIB

PODS = 9  # the last ones, per device
LEAST_MIB, MOST_MIB = 16, 512  # MOST: CONTEXT_MIB of native/libgpucap/src/limit.c
STEP_MIB = 16  # smaller differences are not worth a write


class ContextCosts:
    """The last figures per device."""

    def __init__(self) -> None:
        self._bytes: dict[str, dict[str, int]] = {}  # by device and pod, the last pod last

    def note(self, uuid: str, pod: str, measured_bytes: int) -> None:
        """A process of this pod has settled; nothing is learnt from one that shows no context."""
        if measured_bytes <= 0:
            return
        by_pod = self._bytes.setdefault(uuid, {})
        by_pod.pop(pod, None)
        by_pod[pod] = measured_bytes
        if len(by_pod) > PODS:
            del by_pod[next(iter(by_pod))]

    def mib(self) -> dict[str, int]:
        """Per device, MiB in whole steps."""
        found = {}
        for uuid, by_pod in self._bytes.items():
            steps = -(-median_high(by_pod.values()) // (STEP_MIB * MIB))
            found[uuid] = min(max(steps * STEP_MIB, LEAST_MIB), MOST_MIB)
        return found
