"""How long Python's garbage collection held everything up, as a histogram.

Counted by hand: a collection may begin while a histogram of the library holds its lock.
"""

import gc
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import HistogramMetricFamily, Metric

_BUCKETS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


class GcPauses:
    """Counts once it is in ``gc.callbacks``."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """``clock``: seconds."""
        self._clock = clock
        self._began = 0.0
        self._counts = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        """A collection begins or has ended."""
        if phase == "start":
            self._began = self._clock()
            return
        took = self._clock() - self._began
        self._counts[bisect_left(_BUCKETS, took)] += 1
        self._sum += took

    async def cleanup(self) -> None:
        """Count no more."""
        if self in gc.callbacks:
            gc.callbacks.remove(self)

    def figures(self) -> Metric:
        """As a metric."""
        family = HistogramMetricFamily(
            "gpusched_gc_pause_seconds", "For how long a collection of garbage held everything up."
        )
        bounds = [*map(str, _BUCKETS), "+Inf"]
        buckets = [*zip(bounds, accumulate(self._counts), strict=True)]
        family.add_metric([], buckets, self._sum)
        return family
