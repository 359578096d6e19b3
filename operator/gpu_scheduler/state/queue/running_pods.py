"""Pods that hold devices, as the planner wants them when it looks for room that could be made.

Kept up to date pod by pod, so a cycle that needs them pays for what changed and not for what runs.
``evicting`` are those whose eviction was decided here: they count as leaving before the API server
says so. ``overdue`` are those that should have gone and have not: nobody may count on their room.
"""

from collections.abc import Iterable
from dataclasses import replace

from gpu_scheduler.api.parts import is_gang
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.state.jobs.beginnings import Beginnings
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.state.nodes.ledger import Charge
from gpu_scheduler.state.pods.pod import PodRecord
from gpu_scheduler.state.queue.moves import Moves

MOST_PRIORITY = 100  # that a GPUJob may have
MOST_REMEMBERED = 50_000  # indexes that gave way; the oldest is forgotten


def running_pod(
    pod: PodRecord,
    charge: Charge,
    job: GPUJobRecord | None,
    project: ProjectName | None,
    since: float,
) -> RunningPod:
    """What the planner knows of a pod that holds devices.

    ``job``: its GPUJob, or its group; ``since``: epoch seconds.

    Nothing says which priority one has that lost its job, so none of its own project takes its
    place. But who may edit pods can strip a controller reference, or delete a job and keep its
    pods, so what is borrowed is had back all the same.
    """
    spec = job.spec if job is not None else None
    limit = spec.time_limit_seconds if spec else None
    return RunningPod(
        uid=pod.uid,
        name=pod.name,
        job=job.key if job is not None else JobKey(f"{pod.namespace}/pod {pod.name}"),  # no GPUJob
        project=project or ProjectName(""),
        node=charge.node,
        devices=charge.devices,
        cpu_milli=charge.resources.cpu_milli,
        memory_bytes=charge.resources.memory_bytes,
        ephemeral_bytes=charge.resources.ephemeral_bytes,
        scalars=charge.resources.scalars,
        interactive=spec is not None and spec.type == "interactive",
        priority=spec.priority if spec else MOST_PRIORITY,
        since=since,
        ends=since + limit if limit is not None and pod.started else None,
        leaving=pod.deleting,
        gang=spec is not None and is_gang(spec),
        saved=pod.saved,
    )


class RunningPodStore:
    """All running pods, by node and by project; see ``core.model.running_pods.RunningPods``."""

    def __init__(self, moves: Moves | None = None, beginnings: Beginnings | None = None) -> None:
        """Start empty; ``moves``: what consolidation has to know."""
        self._beginnings = beginnings or Beginnings()
        self._all: dict[PodUID, RunningPod] = {}
        self._on: dict[str, dict[PodUID, RunningPod]] = {}
        self._of: dict[ProjectName, dict[PodUID, RunningPod]] = {}
        self._leaving: dict[PodUID, RunningPod] = {}
        self._evicting: set[PodUID] = set()
        self._spared: set[PodUID] = set()
        self._overdue: set[PodUID] = set()
        self._following: set[PodUID] = set()  # they go with their owner: see ``bereft``
        self.moves = moves or Moves(on=False)
        self._lost_to: dict[tuple[str, int], JobKey] = {}  # by uid of the Job, and index

    def on(self, node: str) -> Iterable[RunningPod]:
        """Those on a node."""
        return self._on.get(node, {}).values()

    def of(self, project: ProjectName) -> Iterable[RunningPod]:
        """Those of a project."""
        return self._of.get(project, {}).values()

    def leaving(self) -> Iterable[RunningPod]:
        """Those that are about to go."""
        return self._leaving.values()

    def all(self) -> Iterable[RunningPod]:
        """All of them."""
        return self._all.values()

    def get(self, uid: PodUID) -> RunningPod | None:
        """One of them."""
        return self._all.get(uid)

    def put(self, new: RunningPod) -> None:
        """Add one or take over what changed of it."""
        goes = new.uid in self._evicting or new.uid in self._following
        if goes or new.uid in self._spared:
            leaving = new.leaving or goes
            new = replace(new, leaving=leaving, spared=new.uid in self._spared)
        if new.uid in self._overdue:
            new = replace(new, leaving=False, spared=True)
        old = self._all.get(new.uid)
        if old == new:
            return
        if old is not None:
            del self._all[new.uid]  # to the end, as on its node and in its project
            self._remove(old)
        self._all[new.uid] = new
        self._on.setdefault(new.node, {})[new.uid] = new
        self._of.setdefault(new.project, {})[new.uid] = new
        if new.leaving:
            self._leaving[new.uid] = new

    def occupy(
        self,
        pod: PodRecord,
        charge: Charge,
        job: GPUJobRecord | None,
        project: ProjectName | None,
    ) -> None:
        """A pod of no Job holds devices, or something about it changed."""
        self.put(running_pod(pod, charge, job, project, self._since(pod)))

    def hold(
        self,
        pod: PodRecord,
        charge: Charge,
        own: JobRecord,
        job: GPUJobRecord,
        project: ProjectName | None,
    ) -> None:
        """A pod of this Job holds devices, or something about it changed."""
        new = running_pod(pod, charge, job, project, self._since(pod))
        if (lost_to := self._lost_to.get((own.uid, pod.index))) is not None:
            new = replace(new, lost_to=lost_to)
        self.put(self.moves.complete(new, pod, own, job))

    def gave_way(self, pod: PodRecord, to: JobKey) -> None:
        """A pod is evicted for a job, which will not have its index evicted the next time."""
        index = pod.job_uid, pod.index
        self._lost_to.pop(index, None)
        self._lost_to[index] = to
        if len(self._lost_to) > MOST_REMEMBERED:
            del self._lost_to[next(iter(self._lost_to))]

    def forget(self, uid: PodUID) -> None:
        """A pod is gone."""
        self.drop(uid)
        self.moves.forget(uid)

    def drop(self, uid: PodUID) -> None:
        """Forget one that holds nothing any more."""
        self._evicting.discard(uid)
        self._spared.discard(uid)
        self._overdue.discard(uid)
        self._following.discard(uid)
        old = self._all.pop(uid, None)
        if old is not None:
            self._remove(old)

    def set_evicting(self, uid: PodUID, evicting: bool) -> None:
        """Note that a pod's eviction was decided, or given up."""
        self._mark(self._evicting, uid, evicting)

    def set_following(self, uid: PodUID, follows: bool) -> None:
        """Note whether a pod that is put next goes with its owner."""
        (self._following.add if follows else self._following.discard)(uid)

    def set_spared(self, uid: PodUID, spared: bool) -> None:
        """Note that a pod cannot be evicted at present, or can again."""
        self._mark(self._spared, uid, spared)

    def give_up_on(self, uid: PodUID) -> None:
        """Note that a pod should have gone by now and has not."""
        if (known := self._all.get(uid)) is not None:
            self._overdue.add(uid)
            self.put(known)

    def _since(self, pod: PodRecord) -> float:
        return self._beginnings.of_pod(pod.uid, pod.started or pod.created)

    def _mark(self, marks: set[PodUID], uid: PodUID, holds: bool) -> None:
        known = self._all.get(uid)
        if known is None:
            return
        if holds:
            marks.add(uid)
        else:
            marks.discard(uid)
        spared = uid in self._spared
        if marks is self._evicting:
            known = replace(known, leaving=holds)
        self.put(replace(known, spared=spared))

    def _remove(self, old: RunningPod) -> None:
        self._leaving.pop(old.uid, None)
        on, of = self._on[old.node], self._of[old.project]
        del on[old.uid], of[old.uid]
        if not on:
            del self._on[old.node]
        if not of:
            del self._of[old.project]
