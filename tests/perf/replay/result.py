"""What a simulation found.

``unallocatedPercent`` is 100 minus the mean of what was allocated, in percent of the cluster, over
the arrivals at which the demand so far, of failed pods too, rounds to 100 % of it: the published
figure. With releasing it is the mean over the counted arrivals. Lost is what was never placed, of
the pods counted, by number and by milli-GPU; by cause, if those were asked for, in percent of all
demand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.perf.replay.causes import Cause
from tests.perf.replay.lifetimes import COUNTED_FROM
from tests.perf.replay.run import Step


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one run; ``unallocated_percent`` None = demand never came to 100 %."""

    unallocated_percent: float | None
    placed_pods: int
    lost_pods: int
    lost_multi_gpu_percent: float  # of the demand of pods with several GPUs
    lost_demand_percent: float
    decisions_per_second: float  # of the CPU's time
    lost_by_cause: Mapping[Cause, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, float | int | None]:
        """The figures by the names that scripts use, rounded."""
        unallocated = self.unallocated_percent
        return {
            "unallocatedPercent": None if unallocated is None else round(unallocated, 4),
            "placedPods": self.placed_pods,
            "lostPods": self.lost_pods,
            "lostMultiGPUPercent": round(self.lost_multi_gpu_percent, 4),
            "lostDemandPercent": round(self.lost_demand_percent, 4),
            "decisionsPerSecond": round(self.decisions_per_second),
        }


def filled(steps: Sequence[Step], capacity_milli: int) -> Result:
    """The figures when nobody leaves."""
    at_full = [a for percent, a in curve(steps, capacity_milli) if round(percent) == 100]
    return _result(steps, steps, _unallocated(at_full))


def churned(steps: Sequence[Step], capacity_milli: int) -> Result:
    """The figures with releasing; the first lifetimes, while the cluster fills, do not count."""
    counted = [step for step in steps if step.time >= COUNTED_FROM]
    share = [100 * step.allocated_milli / capacity_milli for step in counted]
    return _result(counted, steps, _unallocated(share))


def curve(steps: Sequence[Step], capacity_milli: int) -> list[tuple[float, float]]:
    """After each arrival: demand so far and what is allocated, in percent of the cluster."""
    points, demand = [], 0
    for step in steps:
        demand += step.milli
        points.append((100 * demand / capacity_milli, 100 * step.allocated_milli / capacity_milli))
    return points


def _unallocated(allocated_percent: Sequence[float]) -> float | None:
    if not allocated_percent:
        return None
    return 100 - sum(allocated_percent) / len(allocated_percent)


def _result(counted: Sequence[Step], steps: Sequence[Step], unallocated: float | None) -> Result:
    lost = [step for step in counted if not step.placed]
    several = [step for step in counted if step.gpus > 1]
    nanoseconds = sum(step.nanoseconds for step in steps)
    causes = {cause: _percent([s for s in lost if s.cause is cause], counted) for cause in Cause}
    return Result(
        unallocated_percent=unallocated,
        placed_pods=len(counted) - len(lost),
        lost_pods=len(lost),
        lost_multi_gpu_percent=_percent([s for s in several if not s.placed], several),
        lost_demand_percent=_percent(lost, counted),
        decisions_per_second=len(steps) * 1e9 / nanoseconds if nanoseconds else 0.0,
        lost_by_cause={cause: lost for cause, lost in causes.items() if lost},
    )


def _percent(part: Sequence[Step], whole: Sequence[Step]) -> float:
    total = sum(step.milli for step in whole)
    return 100 * sum(step.milli for step in part) / total if total else 0.0
