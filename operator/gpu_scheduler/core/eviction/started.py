"""Pods that this very cycle starts, as running_pods: nobody is started only to give way at once.

Who makes room finds them among the other victims, and first of all: they have done no work. Where
one of them is in the way, the cycle is planned again and they have their turn later in it. Not so
those near which, or because of whose spread, others were put: without them those would be where
they may not.
"""

from collections.abc import Iterable

from gpu_scheduler.core.fit.placement import Placer, running_pods_of
from gpu_scheduler.core.model.request import PodUID, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import EvictionGroup, RunningPod, RunningPods
from gpu_scheduler.core.queue.order import job_rank
from gpu_scheduler.core.queue.pod_group import PodGroup


class Started:
    """Running pods and those that are started; ``started`` is the plan's list of the latter."""

    def __init__(
        self,
        running_pods: RunningPods,
        placer: Placer,
        started: list[PodGroup],
        promised: int,
    ) -> None:
        """``promised``: so many of the first use room that was kept, and stay."""
        self._some = slice(promised, len(started))
        self._running_pods = running_pods
        self._started = started
        self._placer = placer
        self._by_project: dict[ProjectName, dict[PodUID, tuple[PodGroup, EvictionGroup]]] | None = (
            None
        )

    def of(self, project: ProjectName) -> Iterable[RunningPod]:
        """Pods of a project that run or are started."""
        mine = (victim for _, victim in self._of(project) if not self._is_depended_on(victim))
        return [*self._running_pods.of(project), *(pod for victim in mine for pod in victim)]

    def outranks(self, job: WaitingJob) -> bool:
        """Whether a job's priority is above that of one of its project on a node."""
        if any(pod.priority < job.priority for pod in self._running_pods.of(job.project)):
            return True
        return any(group.job.priority < job.priority for group, _ in self._of(job.project))

    def after(self, job: WaitingJob) -> list[EvictionGroup]:
        """Those of a job's project that are started although they come after it."""
        return [
            victim
            for group, victim in self._of(job.project)
            if job_rank(job) < job_rank(group.job)
            and any(pod.devices for pod in victim)
            and not self._is_depended_on(victim)
        ]

    def start(self, group: PodGroup) -> None:
        """A group was started in room that is free."""
        self._started.append(group)

    def group_of(self, victim: EvictionGroup) -> PodGroup | None:
        """The group that is started with a victim; None when it runs already."""
        found = self._known().get(victim[0].project, {}).get(victim[0].uid)
        return None if found is None else found[0]

    def _of(self, project: ProjectName) -> list[tuple[PodGroup, EvictionGroup]]:
        known = self._known().get(project)
        return list({id(each[0]): each for each in known.values()}.values()) if known else []

    def _known(self) -> dict[ProjectName, dict[PodUID, tuple[PodGroup, EvictionGroup]]]:
        if self._by_project is None:
            self._by_project = {}
            for group in self._started[self._some]:
                victim = running_pods_of(group)
                known = self._by_project.setdefault(group.project.name, {})
                known |= {pod.uid: (group, victim) for pod in victim}
        return self._by_project

    def _is_depended_on(self, victim: EvictionGroup) -> bool:
        affinity = self._placer.affinity
        if affinity is None or not affinity.dependents_of:
            return False
        return any(affinity.depended_on(pod.uid) for pod in victim)
