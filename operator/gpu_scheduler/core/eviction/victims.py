"""Which pods may be asked to give way, in which order, and who goes with them.

A gang is one victim: all of its pods go, or none. Training may always be stopped. Of a project's
interactive pods only what they hold together above its quota may be taken; which of them go is a
matter of order and fit. Pods that leave already, or cannot be evicted at present, are no victims,
and who was chosen once in a cycle is not chosen again.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import NamedTuple

from gpu_scheduler.core.eviction.fair_share_state import FairShareState
from gpu_scheduler.core.eviction.started import Started
from gpu_scheduler.core.fairness.flavors import Flavor
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.decision import Evict, EvictReason
from gpu_scheduler.core.model.preemption_policy import STRICT, PreemptionPolicy
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import EvictionGroup, RunningPod
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.reservation.releasing import ReleasingResources

INTERACTIVE = 4.0  # times as much counts what an interactive pod loses: somebody sits before it


class Rank(NamedTuple):
    """The smaller, the sooner a victim has to go."""

    runs: bool  # False = this very cycle starts it
    project: int  # 0 = its project is the one most over its fair share
    priority: int
    interactive: bool  # False where work counts
    age: float  # minus the start of the one that started last; seconds of work, where that counts
    work: float  # milli-seconds that are lost with it, where that counts, see INTERACTIVE
    uid: str


Ranked = list[tuple[Rank, EvictionGroup]]  # in order


class BudgetKey(NamedTuple):
    """What a project can give only so much of: any GPU, or of interactive pods, or of a model."""

    project: ProjectName
    interactive: bool = False
    model: Flavor | None = None


class Victims:
    """The pods that may still be evicted in this cycle."""

    def __init__(
        self,
        running_pods: Started,
        snapshot: Snapshot,
        releasing: ReleasingResources,
        balance: FairShareState,
        preemption_policy: PreemptionPolicy = STRICT,
        now: float = 0.0,
    ) -> None:
        self._preemption_policy = preemption_policy
        self._now = now
        self.running_pods = running_pods
        self._snapshot = snapshot
        self._releasing = releasing
        self._balance = balance
        self._flavors = balance.flavors
        self._parties: dict[ProjectName, list[EvictionGroup]] = {}
        self._chosen: set[PodUID] = set()

    def of_others(self, job: WaitingJob, over: Iterable[ProjectName], *, protected: bool) -> Ranked:
        """Those of projects, the first most over its share, and who starts before its turn.

        ``protected``: none that ran for less than it was promised.
        """
        early = [(self._rank(victim), victim) for victim in self.running_pods.after(job)]
        order = {name: i for i, name in enumerate(over) if name != job.project}
        return early + [
            (self._rank(victim, i), victim)
            for name, i in order.items()
            for victim in self._of(name)
            if not self._is_exempt(victim, job, protected)
        ]

    def of_lower_priority(self, job: WaitingJob) -> Ranked:
        """Those of a lower priority in a job's project, and who starts before its turn.

        Of running pods only those that come after it in its queue, too.
        """
        early = self.running_pods.after(job)
        starting = {pod.uid for victim in early for pod in victim}
        lower = [
            victim
            for victim in self._of(job.project)
            if victim[0].priority < job.priority
            and (job.interactive or not victim[0].interactive)
            and starting.isdisjoint(pod.uid for pod in victim)
            and not self._is_exempt(victim, job, protected=False)
        ]
        return [(self._rank(victim), victim) for victim in early + lower]

    def lost_milli_seconds(self, victim: EvictionGroup) -> float:
        """Milli-GPU times seconds of work that is lost with a victim."""
        return sum(pod.unsaved_milli_seconds(self._now) for pod in victim)

    def loss(self, victim: EvictionGroup) -> str:
        """What is lost with a victim, for its message; empty where that does not count."""
        if self._preemption_policy.strict:
            return ""
        seconds = round(self.lost_milli_seconds(victim) / DEVICE_MILLI)
        return f"; {seconds:,} GPU-seconds of its work are lost"

    def _rank(self, victim: EvictionGroup, project: int = 0) -> Rank:
        found = rank(victim, project)
        if self._preemption_policy.strict or not found.runs:
            return found
        work = self.lost_milli_seconds(victim)
        if found.interactive:
            work *= INTERACTIVE
        age = work / max(1, milli_of(victim))
        return found._replace(project=0, priority=0, interactive=False, age=age, work=work)

    def _is_exempt(self, victim: EvictionGroup, job: WaitingJob, protected: bool) -> bool:
        """Whether it lost its place to this job before, or did not run for long enough yet."""
        preemption_policy, first = self._preemption_policy, victim[0]
        if preemption_policy.strict:
            return False
        if any(pod.lost_to == job.key for pod in victim):
            return True
        if not protected:
            return False
        return any(pod.since + self._min_runtime(first.project) > self._now for pod in victim)

    def _min_runtime(self, name: ProjectName) -> float:
        own = self._balance.projects[name].min_runtime_seconds
        return self._preemption_policy.min_runtime_seconds if own is None else own

    def evict(self, victim: EvictionGroup) -> None:
        """A victim is to go."""
        for pod in victim:
            self._chosen.add(pod.uid)
            self._releasing.add(pod)

    def gives(self, to: ProjectName, victim: EvictionGroup) -> dict[BudgetKey, int]:
        """What a victim gives to a project: milli-GPU of any kind, of interactive pods, of models.

        Nothing, where it is only started by the same project before its turn.
        """
        first, milli = victim[0], milli_of(victim)
        if first.project == to and self.running_pods.group_of(victim) is not None:
            return {}
        found = {BudgetKey(first.project): milli}
        if first.interactive:
            found[BudgetKey(first.project, interactive=True)] = milli
        for pod in victim if self._flavors.models else ():
            for _, device, part, _ in self._snapshot.held_by(pod):
                key = BudgetKey(first.project, model=self._flavors.of_device(device))
                found[key] = found.get(key, 0) + part
        return found

    def interactive_milli(self, name: ProjectName) -> int:
        """What may still be taken from a project's interactive pods; not negative."""
        held = sum(
            pod.milli
            for pod in self.running_pods.of(name)
            if pod.interactive and not pod.leaving and pod.uid not in self._chosen
        )
        return max(0, held - self._balance.quota_milli(name))

    def _of(self, name: ProjectName) -> list[EvictionGroup]:
        if name not in self._parties:
            self._parties[name] = candidates(self.running_pods.of(name))
        return [victim for victim in self._parties[name] if victim[0].uid not in self._chosen]


def candidates(pods: Iterable[RunningPod]) -> list[EvictionGroup]:
    """Those of a project's pods that may be asked to give way, with who goes with them."""
    found: list[EvictionGroup] = []
    gangs: dict[JobKey, list[RunningPod]] = {}
    for pod in pods:
        if pod.leaving:
            continue
        if pod.gang:
            gangs.setdefault(pod.job, []).append(pod)
        elif pod.devices and not pod.spared:
            found.append((pod,))
    return found + [
        tuple(sorted(members, key=lambda pod: (not pod.devices, pod.uid)))
        for members in gangs.values()
        if any(pod.devices for pod in members) and not any(pod.spared for pod in members)
    ]


def rank(victim: EvictionGroup, project: int = 0) -> Rank:
    """The order of victims: project, priority, training first, latest started."""
    first, age = victim[0], -max(pod.since for pod in victim)
    return Rank(age > -inf, project, first.priority, first.interactive, age, 0.0, first.uid)


def weight(ranked: Ranked) -> tuple[float, int]:
    """The work that is lost with victims, and the milli-GPU of those of them that run."""
    held = sum(milli_of(victim) for each, victim in ranked if each.runs)
    return sum(each.work for each, _ in ranked), held


def milli_of(victim: EvictionGroup) -> int:
    """Milli-GPU that they hold together."""
    return sum([pod.milli for pod in victim])


def orders(
    victim: EvictionGroup,
    to: JobKey,
    reason: EvictReason,
    why: str,
    name_of: Callable[[JobKey], str],
) -> list[Evict]:
    """All of a victim are to go, for a job; ``name_of``: what jobs are called."""
    first = victim[0]
    what = f"{first.name} gives {wording.gpus(first.milli)} on {first.node}"
    if first.gang:
        total = wording.gpus(milli_of(victim))
        name = name_of(first.job)
        gang = name if " " in name else f"gang {name}"  # one without a GPUJob says what it is
        what = f"{gang} gives {total} of its {wording.pods(len(victim))}"
    message = f"{what} to {name_of(to)}: {why}"
    found = sorted(victim, key=lambda pod: pod.uid)
    return [Evict(p.uid, p.job, to, reason, message, whole_job=p.gang) for p in found]
