"""Plays a stream of pods against the planner's own snapshot and score table, one at a time.

A pod is placed or lost at once; nothing waits. The scores, the choice of devices and the ledger are
those of the operator; what is left out is what needs projects and a queue.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import thread_time_ns

from tests.perf.replay.arrivals import cluster_of
from tests.perf.replay.causes import Cause, cause_of
from tests.perf.replay.lifetimes import LifetimeEvent
from tests.perf.replay.trace import TraceNode

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.request import PodShape, ProjectName
from gpu_scheduler.core.model.snapshot import IndexedAllocations
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.target_workload import target_workload_of
from gpu_scheduler.core.plan_input import PlanInput

EVERYBODY = ProjectName("everybody")


@dataclass(frozen=True, slots=True)
class Step:
    """One arrival: what it asked for, whether it was placed, and what is allocated then."""

    time: float
    milli: int
    gpus: int
    placed: bool
    allocated_milli: int
    nanoseconds: int  # of CPU, for the decision
    cause: Cause | None = None  # why it was lost, if that was asked for


class FillPlayer:
    """A cluster being filled by one policy.

    The typical workload is that of the trace, as in the published protocol.
    """

    def __init__(
        self,
        nodes: Sequence[TraceNode],
        pods: Sequence[PodShape],
        packing: Packing,
        *,
        causes: bool = False,
    ) -> None:
        """``causes``: find out why pods are lost, which takes longer than to find that they are."""
        self._causes = causes
        pod_shapes = Counter(pods)
        self.session = PlannerCache()
        workload = target_workload_of(pod_shapes)
        empty = PlanInput(cluster_of(nodes), {}, (), packing=packing, workload=workload)
        self.session.begin(empty)
        self.allocated_milli = self._asked_milli = 0  # by all that are there, or would be
        self._capacity_milli = sum(node.gpus for node in nodes) * DEVICE_MILLI
        for pod_shape in pod_shapes:  # worked out before time is measured, as in a running operator
            self.session.table.best(self.session.pod_requests.of(pod_shape))

    def fill(self, stream: Iterable[PodShape], tell: Callable[[], None]) -> list[Step]:
        """Everybody arrives, nobody leaves."""
        steps = []
        for number, pod_shape in enumerate(stream):
            steps.append(self._arrive(float(number), pod_shape)[0])
            tell()
        return steps

    def churn(self, events: Iterable[LifetimeEvent], tell: Callable[[], None]) -> list[Step]:
        """Pods come and go; who does not fit is lost."""
        steps = []
        there: dict[int, tuple[int, PodShape, IndexedAllocations]] = {}
        asked: dict[int, int] = {}
        for event in events:
            if event.pod_shape is None:
                self._asked_milli -= asked.pop(event.number)
                if event.number in there:
                    self._leave(*there.pop(event.number))
                continue
            asked[event.number] = event.pod_shape.nominal_milli
            step, where = self._arrive(event.time, event.pod_shape)
            steps.append(step)
            if where is not None:
                there[event.number] = (where[0], event.pod_shape, where[1])
            tell()
        return steps

    def _arrive(
        self, time: float, pod_shape: PodShape
    ) -> tuple[Step, tuple[int, IndexedAllocations] | None]:
        session = self.session
        started = thread_time_ns()
        demand = session.pod_requests.of(pod_shape)
        found = session.table.best(demand)
        if found is not None:
            session.snapshot.take(found[0], pod_shape, found[1].picks, EVERYBODY)
        took = thread_time_ns() - started
        milli = pod_shape.nominal_milli
        self._asked_milli += milli
        where = cause = None
        if found is not None:
            self.allocated_milli += milli
            where = (found[0], found[1].picks)
        elif self._causes:
            overload = self._asked_milli > self._capacity_milli
            cause = cause_of(demand, session.snapshot, overload=overload)
        gpus = sum(request.count for request in pod_shape.devices)
        placed = where is not None
        return Step(time, milli, gpus, placed, self.allocated_milli, took, cause), where

    def _leave(self, node: int, pod_shape: PodShape, picks: IndexedAllocations) -> None:
        self.session.snapshot.release(node, pod_shape, picks, EVERYBODY)
        self.allocated_milli -= pod_shape.nominal_milli
