"""Plays a workload through ``core.plan``, second by second, as the operator would carry it out.

Nothing is faked but time: plans are made whenever something changed, at most one a second; who is
evicted leaves after its grace, and its index waits again as a new pod, with the work that it had
saved. A pod starts at once where it is placed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count, islice
from math import ceil
from typing import Protocol

from tests.perf.sharing.workload import SimulatedJob, Workload

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment, Evict, Plan, Reservation
from gpu_scheduler.core.model.preemption_policy import NOTHING, STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import (
    Gang,
    JobKey,
    PodUID,
    WaitingJob,
    WaitingPod,
)
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.core.packing.target_workload import DEFAULT
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.state.queue.running_pods import RunningPodStore


@dataclass(slots=True, eq=False)
class Index:
    """One pod of a job, however often it begins anew."""

    job: SimulatedJob
    number: int
    left: float  # seconds of work that are not saved yet
    arrived: float
    since: float  # it waits, or runs, since then
    waited: float = 0.0  # until it ran, each time
    tries: int = 0
    lost_to: JobKey | None = None
    run: RunningPod | None = None

    @property
    def name(self) -> str:
        """Of its pods."""
        return f"{self.job.name}-{self.number}"

    @property
    def uid(self) -> PodUID:
        """Of its present pod."""
        return PodUID(f"{self.name}-{self.tries}")

    def saved(self, ran: float) -> float:
        """How much of the seconds that it ran is safe."""
        every = self.job.checkpoint_seconds
        return 0.0 if every is None else ran // every * every


class Watcher(Protocol):
    """Counts what happens."""

    def planned(self, player: "SharingPlayer", result: Plan) -> None:
        """A plan was made and carried out."""

    def ended(self, index: Index, now: float) -> None:
        """A pod's work is done."""

    def gone(self, index: Index, lost_seconds: float, now: float) -> None:
        """An evicted pod is gone, with so many seconds of work."""


class SharingPlayer:
    """One play."""

    def __init__(self, workload: Workload, preemption_policy: PreemptionPolicy = STRICT) -> None:
        """``preemption_policy``: by which it is played."""
        self.workload = workload
        self._preemption_policy = preemption_policy
        self.cluster: Cluster = workload.cluster.copy()
        self.running_pods = RunningPodStore()
        self.waiting: dict[JobKey, dict[int, Index]] = {}
        self.running: dict[PodUID, Index] = {}
        self.reservations: tuple[Reservation, ...] = ()
        self.now = 0.0
        self._going: set[PodUID] = set()
        self._next: dict[str, Iterator[tuple[int, float]]] = {}  # pods that are not there yet
        self._memory = NOTHING
        self._cache = PlannerCache()
        self._node = {node.name: n for n, node in enumerate(self.cluster.nodes)}
        self._device = {name: d for d, name in enumerate(self.cluster.dev_id)}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self.known = {key_of(job): _without_pods(job) for job in workload.jobs}
        """All jobs, as the planner sees them, but for their pods."""
        for job in sorted(workload.jobs, key=lambda job: (job.arrives, job.name)):
            self._at(job.arrives, lambda job=job: self._arrive(job))  # type: ignore[misc]

    def play(self, watcher: Watcher, tell: Callable[[int], None] = lambda seconds: None) -> None:
        """All of it; ``tell`` hears how many seconds went by."""
        self._watcher = watcher
        while self._events and self._events[0][0] <= self.workload.seconds:
            before, self.now = self.now, self._events[0][0]
            while self._events and self._events[0][0] <= self.now:
                heappop(self._events)[2]()
            self._plan()
            tell(int(self.now - before))
        self.now = self.workload.seconds

    def jobs(self) -> list[WaitingJob]:
        """What waits, as the planner sees it."""
        return [self._waiting(key, indexes) for key, indexes in self.waiting.items()]

    def _plan(self) -> None:
        given = PlanInput(
            self.cluster,
            self.workload.projects,
            self.jobs(),
            self.running_pods,
            self.reservations,
            self.now,
            preemption_policy=self._preemption_policy,
            memory=self._memory,
            workload=DEFAULT,
        )
        result = plan(given, self._cache)
        self.reservations = result.reservations
        self._memory = result.memory
        for assignment in result.assignments:
            self._start(assignment)
        for evict in result.evicts:
            self._evict(evict)
        self._watcher.planned(self, result)
        if result.again_at is not None and result.again_at > self.now:
            self._at(result.again_at, lambda: None)

    def _waiting(self, key: JobKey, indexes: dict[int, Index]) -> WaitingJob:
        pods = tuple(
            WaitingPod(index.uid, index.name, index.job.pod_shape, since=index.since)
            for _, index in sorted(indexes.items())
        )
        return replace(self.known[key], pods=pods)

    def _at(self, time: float, what: Callable[[], None]) -> None:
        """Something happens, at a whole second."""
        heappush(self._events, (float(ceil(time)), next(self._number), what))

    def _arrive(self, job: SimulatedJob) -> None:
        self._next[job.name] = iter(enumerate(job.runs))
        self._come(job, len(job.runs) if job.parallelism is None else job.parallelism)

    def _come(self, job: SimulatedJob, most: int) -> None:
        """So many of the job's next pods are there."""
        for number, run in islice(self._next[job.name], most):
            index = Index(job, number, run, self.now, self.now)
            self.waiting.setdefault(key_of(job), {})[number] = index

    def _start(self, assignment: Assignment) -> None:
        indexes = self.waiting[assignment.job]
        index = next(each for each in indexes.values() if each.uid == assignment.pod)
        del indexes[index.number]
        if not indexes:
            del self.waiting[assignment.job]
        job, kind = index.job, index.job.pod_shape
        index.waited += self.now - index.since
        index.since = self.now
        index.run = RunningPod(
            index.uid,
            index.name,
            assignment.job,
            job.project,
            assignment.node,
            assignment.devices,
            kind.cpu_milli,
            kind.memory_bytes,
            kind.ephemeral_bytes,
            job.interactive,
            job.priority,
            self.now,
            self.now + index.left if job.limited else None,
            gang=job.gang,
            pod_shape=kind,
            lost_to=index.lost_to,
        )
        self.running[index.uid] = index
        self.running_pods.put(index.run)
        self._take(index.run, 1)
        uid = index.uid
        self._at(self.now + index.left, lambda: self._end(uid))
        self._save(uid)

    def _save(self, uid: PodUID) -> None:
        index = self.running.get(uid)
        if index is None or index.run is None or uid in self._going:
            return
        if index.saved(self.now - index.since) and self.now > index.since:
            index.run = replace(index.run, saved=self.now)
            self.running_pods.put(index.run)
        if index.job.checkpoint_seconds is not None:
            self._at(self.now + index.job.checkpoint_seconds, lambda: self._save(uid))

    def _end(self, uid: PodUID) -> None:
        index = self.running.pop(uid, None)
        if index is None:
            return
        self._leave(index)
        self._going.discard(uid)
        self._watcher.ended(index, self.now)
        self._come(index.job, 1)

    def _evict(self, evict: Evict) -> None:
        index = self.running[evict.pod]
        assert evict.pod not in self._going, f"{evict.pod} is evicted twice"
        self._going.add(evict.pod)
        self.running_pods.set_evicting(evict.pod, True)
        index.lost_to = evict.beneficiary
        self._at(self.now + self.workload.grace_seconds, lambda: self._go(evict.pod))

    def _go(self, uid: PodUID) -> None:
        index = self.running.pop(uid, None)
        if index is None:  # it was done within its grace
            return
        self._going.remove(uid)
        self._leave(index)
        ran = self.now - index.since
        saved = index.saved(ran)
        self._watcher.gone(index, ran - saved, self.now)
        index.left -= saved
        index.tries = index.tries + 1
        index.since = self.now
        self.waiting.setdefault(key_of(index.job), {})[index.number] = index

    def _leave(self, index: Index) -> None:
        assert index.run is not None
        self.running_pods.drop(index.run.uid)
        self._take(index.run, -1)
        index.run = None

    def _take(self, run: RunningPod, sign: int) -> None:
        """Devices and resources of a node are held by a pod, or (-1) free again."""
        c, node = self.cluster, self._node[run.node]
        for allocated in run.devices:
            device = self._device[allocated.device]
            c.free_milli[device] -= sign * allocated.milli
            c.free_mib[device] -= sign * allocated.mib
        c.free_pods[node] -= sign
        c.free_cpu_milli[node] -= sign * run.cpu_milli
        c.free_memory_bytes[node] -= sign * run.memory_bytes
        c.free_ephemeral_bytes[node] -= sign * run.ephemeral_bytes
        c.allocated_milli[run.project] = c.allocated_milli.get(run.project, 0) + sign * run.milli


def _without_pods(job: SimulatedJob) -> WaitingJob:
    size = len(job.runs)
    return WaitingJob(
        key_of(job),
        job.project,
        (),
        job.interactive,
        job.priority,
        job.arrives,
        ceil(max(job.runs)) if job.limited else None,
        Gang(size, size, distinct=False) if job.gang else None,
    )


def key_of(job: SimulatedJob) -> JobKey:
    """Its name as a GPUJob's."""
    return JobKey(f"{job.project}/{job.name}")
