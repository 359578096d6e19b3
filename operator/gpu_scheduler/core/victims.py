"""Which pods may be asked to give way, in which order, and who goes with them.

A gang is one victim: all of its pods go, or none. Training may always be stopped. Of a project's
interactive pods only what they hold together above its quota may be taken; which of them go is a
matter of order and fit. Pods that leave already, or cannot be evicted at present, are no victims.
Called by ``reclaim``.
"""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from gpu_scheduler.core import wording
from gpu_scheduler.core.decision import Evict, EvictReason
from gpu_scheduler.core.occupants import Occupant, Occupants
from gpu_scheduler.core.request import JobKey, Project, ProjectName


class Rank(NamedTuple):
    """The smaller, the sooner a pod has to go."""

    runs: bool  # False = this very cycle starts it
    project: int  # 0 = its project is the one most over its fair share
    priority: int
    interactive: bool
    age: float  # minus the start: the latest first
    uid: str


def rank(pod: Occupant, project: int = 0, since: float | None = None) -> Rank:
    """The order of victims: project, priority, training first, latest started."""
    age = -(pod.since if since is None else since)
    return Rank(age > -inf, project, pod.priority, pod.interactive, age, pod.uid)


class Parties:
    """Who goes together: a pod alone, or all pods of its gang that hold anything."""

    def __init__(self, occupants: Occupants) -> None:
        self._occupants = occupants
        self._gangs: dict[ProjectName, dict[JobKey, tuple[Occupant, ...]]] = {}

    def of(self, pod: Occupant) -> tuple[Occupant, ...]:
        """All that go with a pod, itself included; those that leave already do not count."""
        if not pod.gang:
            return (pod,)
        gangs = self._gangs.get(pod.project)
        if gangs is None:
            lists: dict[JobKey, list[Occupant]] = {}
            for each in self._occupants.of(pod.project):
                if each.gang and not each.leaving:
                    lists.setdefault(each.job, []).append(each)
            gangs = self._gangs[pod.project] = {
                job: tuple(sorted(members, key=lambda each: each.uid))
                for job, members in lists.items()
            }
        return gangs.get(pod.job, (pod,))

    def milli(self, pod: Occupant) -> int:
        """Milli-GPU that they hold together."""
        return sum(each.milli for each in self.of(pod)) if pod.gang else pod.milli

    def orders(self, pod: Occupant, to: JobKey, reason: EvictReason, why: str) -> list[Evict]:
        """All that go with a pod are to go, for a job."""
        party = self.of(pod)
        what = f"{pod.name} gives {wording.gpus(pod.milli)} on {pod.node}"
        if pod.gang:
            total = wording.gpus(self.milli(pod))
            what = f"gang {pod.job} gives {total} of its {wording.pods(len(party))}"
        message = f"{what} to {to}: {why}"
        return [Evict(p.uid, p.job, to, reason, message, whole_job=p.gang) for p in party]

    def rank(self, pod: Occupant, project: int = 0) -> Rank:
        """The rank of a pod; that of a gang goes by its latest started member."""
        return rank(pod, project, max(each.since for each in self.of(pod)) if pod.gang else None)

    def preemptible(self, pods: Iterable[Occupant]) -> list[Occupant]:
        """Those of a project's pods that may be asked to give way; of a gang one for all."""
        found = []
        seen: set[JobKey] = set()
        for pod in pods:
            if not pod.grants or pod.leaving or pod.spared:
                continue
            if pod.gang:
                party = self.of(pod)
                if pod.job in seen or any(each.spared for each in party):
                    continue
                seen.add(pod.job)
                pod = next(each for each in party if each.grants)  # the same one every time
            found.append(pod)
        return found


def interactive_spare_milli(project: Project, pods: Iterable[Occupant]) -> int:
    """What may be taken from a project's interactive pods; not negative."""
    held = sum(pod.milli for pod in pods if pod.interactive and not pod.leaving)
    return max(0, held - project.quota_milli)
