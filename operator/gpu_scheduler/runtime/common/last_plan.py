"""What the last plan said: read by the status, by ``gang_guard`` and by the metrics.

Written by ``planning`` alone, after each cycle. Thousands wait, and with each start the positions
of all change: a wait is put together when it is asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gpu_scheduler.api.states import Trait, having
from gpu_scheduler.core.model.decision import Reason, Reservation, Verdict, Wait, Waits
from gpu_scheduler.core.model.preemption_policy import NOTHING, PlannerMemory
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.wording import names
from gpu_scheduler.runtime.common.quarantine import Quarantine
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import Stage

_MOST_REFUSALS = 2  # told of one job
_ALL_NODES = having(Trait.ALL_NODES)


class WaitsByJob(Mapping[JobKey, Wait]):
    """Why jobs wait, with what is known beside the plan."""

    def __init__(
        self,
        state: ClusterState,
        said: Waits = Waits(),  # noqa: B008 - it never changes
        own: Mapping[JobKey, Wait] | None = None,
        left_out: Sequence[str] = (),
    ) -> None:
        """What a plan said, but for those of ``own``; ``left_out``: nodes it did not look at."""
        self._state = state
        self._said = said
        self._own = own or {}
        self.doubt = _doubt(left_out, state)
        self.verdicts: Mapping[JobKey, Verdict] = said.verdicts()
        if own:
            self.verdicts |= {key: (wait.reason, wait.message) for key, wait in own.items()}

    def __getitem__(self, key: JobKey) -> Wait:
        """That of a job."""
        if key in self._own:
            return self._own[key]
        wait = self._said.of(key)
        if wait is None:
            raise KeyError(key)
        return self._completed(self._in_doubt(wait) if self.doubt else wait)

    def __iter__(self) -> Iterator[JobKey]:
        """Jobs that wait."""
        return iter(self.verdicts)

    def __len__(self) -> int:
        """How many."""
        return len(self.verdicts)

    def __contains__(self, key: object) -> bool:
        """Whether a job waits."""
        return key in self.verdicts

    def _completed(self, wait: Wait) -> Wait:
        """With how far the job has come, and who refused it where."""
        message = wait.message
        if wait.reason is Reason.WAITING_FOR_TOPOLOGY:
            pods = [p for p in self._state.workloads.pods(wait.job) if p.stage is not Stage.ENDED]
            nominated = len(self._state.decisions.nominated.of(wait.job))
            placed = sum(bool(pod.node) or pod.uid in self._state.decisions.assumed for pod in pods)
            total = self._wanted(wait.job, len(pods)) + nominated
            message = f"{placed + nominated} of {total} pods placed; {message}"
        said = {node: why for node, why in self._state.waiting.avoided(wait.job).items() if why}
        if said:
            told = [f"{node}: {why}" for node, why in sorted(said.items())[:_MOST_REFUSALS]]
            message = f"{message}; refused on {'; '.join(told)}"
        if missing := self._state.waiting.looked.said(wait.job):
            message = f"{message}{missing}"
        return wait if message is wait.message else replace(wait, message=message)

    def _wanted(self, key: JobKey, pods: int) -> int:
        """How many pods there are, with those that wait and do not exist."""
        job = self._state.waiting_job(key)
        made = self._state.pods.known
        return pods + sum(1 for pod in job.pods if pod.uid not in made) if job is not None else pods

    def _in_doubt(self, wait: Wait) -> Wait:
        """A verdict about all nodes there are is none while some are not counted."""
        if wait.reason not in _ALL_NODES:
            return wait
        message = f"{wait.message}; not counting {self.doubt}"
        return replace(wait, reason=Reason.WAITING_FOR_RESOURCES, message=message)


def _doubt(left_out: Sequence[str], state: ClusterState) -> str:
    """What of the cluster a plan did not count that may be there all the same; empty = nothing."""
    found = []
    if left_out:
        found.append(
            f"{names(left_out)}, which the scheduler has set aside (kubectl describe node)"
        )
    if hidden := [name for name in state.ledger.unlisted if state.ledger.has_node(name)]:
        theirs = "GPUs that pods hold there and that are not listed at present (kubectl get gn)"
        found.append(f"{names(sorted(hidden))}: {theirs}")
    return ", nor ".join(found)


@dataclass(slots=True)
class LastPlan:
    """Its words and numbers.

    Attributes:
        state: what is known beside it.
        quarantine: what was not planned with.
        waits: why jobs wait.
        reservations: room that is made or kept for pods.
        memory: what the next plan is to know of it.
        shares_milli: fair shares.
        shares_by_model_milli: the same of models with guarantees.
        cycles: plans so far.
    """

    state: ClusterState
    quarantine: Quarantine
    waits: Mapping[JobKey, Wait] = field(default_factory=dict)
    reservations: Mapping[PodUID, Reservation] = field(default_factory=dict)
    memory: PlannerMemory = NOTHING
    shares_milli: Mapping[ProjectName, int] = field(default_factory=dict)
    shares_by_model_milli: Mapping[str, Mapping[ProjectName, int]] = field(default_factory=dict)
    cycles: int = 0
    _turn: Iterator[JobKey] = field(default_factory=lambda: iter(()))
    _news: bool = False  # since the last turn began
    _by_job: tuple[object, Mapping[JobKey, Sequence[Reservation]]] = (None, MappingProxyType({}))

    def expecting(self) -> set[JobKey]:
        """Jobs for which room is being made or kept."""
        return {each.job for each in self.reservations.values()}

    def reservations_of(self, key: JobKey) -> Sequence[Reservation]:
        """Room that is made or kept for pods of a job."""
        if self._by_job[0] is not self.reservations:
            found: dict[JobKey, list[Reservation]] = {}
            for each in self.reservations.values():
                found.setdefault(each.job, []).append(each)
            self._by_job = self.reservations, found
        return self._by_job[1].get(key, ())

    def verdicts(self) -> Mapping[JobKey, Verdict]:
        """Reason and sentence of each job that waits, as the plan said them."""
        return self.waits.verdicts if isinstance(self.waits, WaitsByJob) else {}

    def take(self, said: Waits, own: Mapping[JobKey, Wait], left_out: Sequence[str]) -> set[JobKey]:
        """Take over what a plan said; the jobs that wait for another reason now, or no more."""
        before = self.verdicts()
        doubt = self.waits.doubt if isinstance(self.waits, WaitsByJob) else ""
        now = WaitsByJob(self.state, said, own, left_out)
        self.waits, verdicts = now, now.verdicts
        changed = {k for k, verdict in verdicts.items() if before.get(k) != verdict}
        self._news |= bool(changed) or len(before) != len(verdicts)
        other = {k for k in changed if k not in before or before[k][0] is not verdicts[k][0]}
        if doubt != now.doubt:
            other |= {k for k, (reason, _) in verdicts.items() if reason in _ALL_NODES}
        return other | (before.keys() - verdicts.keys())

    def numbers(self, most: int) -> list[JobKey]:
        """The next jobs whose position or sentence may be another one: all have their turn."""
        taken: list[JobKey] = []
        while len(taken) < most:
            key = next(self._turn, None)
            if key is None and not self._news:
                break
            if key is None:
                self._turn = iter(tuple(self.waits))
                self._news = False
            else:
                taken.append(key)
        return taken
