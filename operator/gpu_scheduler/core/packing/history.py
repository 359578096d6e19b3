"""Recent pods by pod shape, from which the target workload is learned.

Starts from the default target workload, which is worth ``DEFAULT_WORTH`` of its pods and fades as
pods are placed: a few dozen jobs must not turn the policy round, or where the next half of a GPU
goes would depend on what people happened to try yesterday. Old pods fade too: once there are many,
all counts are halved. The target workload changes in steps, not with every pod, because a new one
means that every score is worked out anew. Called by ``session``.
"""

from collections import Counter
from collections.abc import Mapping

from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.packing.target_workload import (
    DEFAULT,
    DEFAULT_COUNTS,
    TargetWorkload,
    target_workload_of,
)

MOST_PODS = 20_000  # counted before all counts are halved
DEFAULT_WORTH = 20  # times the pods in the default target workload, two thousand in all
LEAST_STEP = 50  # pods between two mixes, and a fifth of all


class History:
    """Counts of placed pods and the target workload that follows from them."""

    def __init__(self) -> None:
        self._counts: Counter[PodShape] = Counter(
            {pod_shape: count * DEFAULT_WORTH for pod_shape, count in DEFAULT_COUNTS.items()}
        )
        self._total = self._counts.total()
        self._since = 0
        self.workload: TargetWorkload = DEFAULT

    def note(self, placed: Mapping[PodShape, int]) -> bool:
        """Count placed pods; True when the target workload has changed."""
        self._counts.update(placed)
        new = sum(placed.values())
        self._total = self._total + new
        self._since = self._since + new
        if self._since < max(LEAST_STEP, self._total // 5):
            return False
        if self._total > MOST_PODS:
            halved = {
                pod_shape: count // 2 for pod_shape, count in self._counts.items() if count > 1
            }
            self._counts = Counter(halved)
            self._total = self._counts.total()
        self._since = 0
        self.workload = target_workload_of(self._counts)
        return True
