"""Jobs whose pods do not come, because the API server refuses them: ADR 0039.

The Job controller makes the pods of a Job, and nobody sees it fail. Where pods have been missing
for a second, the API server is asked by a dry run, which says what is so now: its sentence is the
job's message. What has a place and does not come gives it back, its Jobs become as narrow as their
pods, and nothing more is planned of the job. It is asked again by the rules for refused jobs, and
at once when a ResourceQuota of the namespace changes; when it says yes the job waits for its turn.
A job that never had a pod and whose template is refused is judged like a new one.
"""

import logging
from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import NoReturn

from gpu_scheduler.api.gpujob import MAX_PODS
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.failures import Failures
from gpu_scheduler.kube.objects import ResourceQuota
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.runtime.common.poll import poll_for_ever
from gpu_scheduler.runtime.jobs import doubting
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.doubting import doubt
from gpu_scheduler.runtime.jobs.refused.refusals import FIRST_SECONDS, MOST_SECONDS, Refusals
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.doubts import FailedStart, elsewhere_first
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord, namespace_of
from gpu_scheduler.state.pods.counting import parallelism_of
from gpu_scheduler.state.pods.pod import PodRecord, Stage

log = logging.getLogger(__name__)

ASK_AFTER_SECONDS = 1.0
# Before devices that are kept for a pod are given back, where the Job controller makes no pods, or
# makes those of places that are this much younger: it takes Jobs roughly in their order.
PATIENCE_SECONDS = 30.0
_DISORDER_SECONDS = 5.0
_REFUSED = "its pods are refused"
_TRY_AGAIN = Backoff(FIRST_SECONDS, MOST_SECONDS)
_LOOK_SECONDS = 0.25
_ASKED_AT_ONCE = 3  # jobs in a look
_GIVEN_UP_AT_ONCE = 50  # jobs in a look; each costs 0.2 ms
# Between two questions about pods that are missing and not refused.
_ASK_AGAIN = Backoff(ASK_AFTER_SECONDS, 64 * ASK_AFTER_SECONDS)


class MissingPods:
    """Asks why pods are missing."""

    def __init__(
        self,
        state: ClusterState,
        acceptance: Acceptance,
        accepting: Accepting,
        follow: Callable[[JobKey], None],
        *,
        clock: Callable[[], float],
    ) -> None:
        """Prepare.

        Args:
            state: what is known.
            acceptance: asks the API server.
            accepting: told whose template it refuses.
            follow: look at the Jobs of a GPUJob.
            clock: monotonic seconds.
        """
        self._state = state
        self._acceptance = acceptance
        self._clock = clock
        self._accepting = accepting
        self._follow = follow
        self._nominated: dict[JobKey, tuple[int, float]] = {}  # how many, and since when none came
        self._made_at = -inf  # when the Job controller made the last pod that has a place
        self._made_of = -inf  # since when the youngest of these places was waited for
        self._given_up: dict[JobKey, int] = {}  # pods that there were when places were given back
        self.refusals = Refusals(clock, self._again)
        self._failures: Failures[JobKey] = Failures(clock, first_seconds=2 * ASK_AFTER_SECONDS)
        self._ask_at: dict[JobKey, float] = {}  # jobs that miss pods, monotonic seconds
        self._asked: dict[JobKey, int] = {}  # how often they were, since they began to
        self._refused: dict[JobKey, tuple[str, str, int]] = {}  # GPUJob's uid, sentence, its pods

    def refused(self, job: GPUJobRecord) -> str:
        """What the API server says to a job's next pod; empty: it is not known to refuse any."""
        uid, said, _ = self._refused.get(job.key, ("", "", 0))
        return said if uid == job.uid else ""

    def see(self, job: GPUJobRecord) -> None:
        """Look whether pods of a job are missing."""
        key = job.key
        if self._live(key) > self._given_up.get(key, MAX_PODS):
            del self._given_up[key]
            doubting.release(self._state, key)
        if job.deleting or not self._lacks(key):
            self._found(key)
        elif key not in self._asked:
            self._asked[key] = 0
            self._ask_at[key] = self._clock() + ASK_AFTER_SECONDS

    def quota_changed(self, namespace: str) -> None:
        """A ResourceQuota of a namespace, or what else its pods are judged by, is another."""
        self.refusals.changed(namespace)

    async def run(self) -> NoReturn:
        """Ask for ever; ends with NotLeader when the fence closes."""
        await poll_for_ever(
            self.check, seconds=_LOOK_SECONDS, loop="missing", about="jobs whose pods do not come"
        )

    async def check(self) -> None:
        """Ask about a few jobs whose time it is, of all namespaces in turn."""
        now = self._clock()
        self._give_up(now)
        due: Turns[str, JobKey] = Turns()
        for key, at in self._ask_at.items():
            if at <= now:
                due.add(namespace_of(key), key)
        for _ in range(_ASKED_AT_ONCE):
            taken = due.take()
            if taken is None:
                return
            if self._ask_at.pop(taken[1], None) is None:
                continue  # it has gone, or has its pods, while others were asked about
            try:
                await self._ask(taken[1])
                self._failures.over(taken[1])
            except errors.NotLeader:
                raise
            except errors.ApiError as error:
                if self._failures.note(taken[1], error):
                    log.info("%s: %s", taken[1], error)
                self._again(taken[1], self._failures.left_seconds(taken[1]))
            except Exception:
                unexpected("missing", taken[1])

    async def _ask(self, key: JobKey) -> None:
        job = self._state.gpujobs.get(key)
        project = self._state.projects.owner(job.namespace) if job is not None else None
        if job is None or project is None or not self._lacks(key):
            return self._found(key)
        about: Hashable = (job.uid, job.generation)
        if not self.refusals.may_try(key, about):
            return None  # it comes back when it is time
        self._asked[key] = self._asked.get(key, 0) + 1
        refused = await self._acceptance.refusal(job, ProjectName(project))
        if key not in self._asked:
            return None  # it has gone, or has its pods, meanwhile
        if refused is None:
            return self._allowed(key)
        doubt(self._state, key, FailedStart(self._clock(), refused.message))
        if not refused.for_now and not any(self._state.workloads.pods(key)):
            self._doubt(job.namespace, key)
            return self.refusals.refused(key, about)  # nor is it asked about sooner
        if self.refused(job) != refused.message:
            self._refused[key] = (job.uid, refused.message, self._live(key))
            self._state.changes.touch(key)
        self._hold_back(key)
        self._state.decisions.set_inadmissible(key, _REFUSED, True)
        self._follow(key)
        return self.refusals.refused(key, about)

    def _doubt(self, namespace: str, *keys: JobKey) -> None:
        """Judge these jobs anew, and all of their namespace that have no pod either."""
        beside = (k for k in self._state.decisions.nominated.keys() if namespace_of(k) == namespace)
        for key in dict.fromkeys((*keys, *beside)):
            job = self._state.gpujobs.get(key)
            if job is not None and not any(self._state.workloads.pods(key)):
                self._found(key)
                self._hold_back(key)
                self._accepting.doubt(job)
                self._follow(key)

    def _lacks(self, key: JobKey) -> bool:
        """Whether pods of a job are missing, or would be if it were not known that they are."""
        if key in self._refused:
            return self._live(key) <= self._refused[key][2]
        return missing(self._state.workloads.jobs(key), self._state.workloads.pods(key))

    def _live(self, key: JobKey) -> int:
        return sum(1 for pod in self._state.workloads.pods(key) if pod.stage is not Stage.ENDED)

    def _allowed(self, key: JobKey) -> None:
        """The API server takes a job's next pod."""
        self.refusals.accepted(key)
        if self._refused.pop(key, None) is None:
            return self._again(key, _ASK_AGAIN.delay_seconds(self._asked[key]))
        self._found(key)
        return self._state.decisions.set_inadmissible(key, _REFUSED, False)

    def _hold_back(self, key: JobKey) -> None:
        """Nothing is nominated of a job any more: its Jobs are not to try in vain."""
        self._state.decisions.give_back(key)
        for own in self._state.workloads.jobs(key):
            count = self._state.count(own.uid)
            if (
                parallelism_of(own) > count.live and not count.unplaced
            ):  # else it shrinks by ``narrowing``
                self._state.decisions.narrow(own, count.live)

    def _give_up(self, now: float) -> None:
        """Places of pods that do not come, nobody knows why, are given back."""
        before, self._nominated = self._nominated, {}
        of = self._state.decisions.nominated
        for key, (known, since) in before.items():
            if len(of.of(key)) < known and self._live(key):
                self._made_at = now
                self._made_of = max(self._made_of, since)
        for key in of.keys():
            count = len(of.of(key))
            known, since = before.get(key, (count, now))
            self._nominated[key] = count, now if count < known else since
        makes_pods = now - self._made_at < PATIENCE_SECONDS
        late = [
            key
            for key, (_, since) in self._nominated.items()
            if now - since >= PATIENCE_SECONDS
            and not (makes_pods and self._made_of <= since + _DISORDER_SECONDS)
        ]
        if late:
            there = self._state.gpujobs
            self._given_up = {key: n for key, n in self._given_up.items() if key in there}
        for key in late[:_GIVEN_UP_AT_ONCE]:
            self._give_up_on(key, now)

    def _give_up_on(self, key: JobKey, now: float) -> None:
        log.info("%s: its pods do not come; it waits for its turn again", key)
        del self._nominated[key]  # the next place has its own time
        self._state.decisions.give_back(key)
        self._given_up[key] = self._live(key)
        why = f"its Job made no pod within {PATIENCE_SECONDS:g} s, and nobody says why"
        delays = elsewhere_first(_TRY_AGAIN)
        failed = FailedStart(now, why, Reason.START_TIMED_OUT, delays, explained=False)
        doubt(self._state, key, failed)
        self._follow(key)

    def _again(self, key: JobKey, seconds: float) -> None:
        at = self._clock() + seconds
        self._ask_at[key] = min(at, self._ask_at.get(key, at))

    def _found(self, key: JobKey) -> None:
        """A job has its pods, or is gone."""
        self._ask_at.pop(key, None)
        self._asked.pop(key, None)
        self.refusals.forget(key)
        if self._refused.pop(key, None) is not None:
            self._state.decisions.set_inadmissible(key, _REFUSED, False)


class QuotaHandler:
    """Tells of each ResourceQuota that changed, by its namespace."""

    def __init__(self, *changed: Callable[[str], None]) -> None:
        self._changed = changed

    def changed(self, obj: ResourceQuota) -> None:
        """One was added or changed."""
        for tell in self._changed:
            tell(obj.metadata.namespace)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """One is gone."""
        for tell in self._changed:
            tell(namespace)


def missing(own: Iterable[JobRecord], pods: Iterable[PodRecord]) -> bool:
    """Whether Jobs have fewer pods than they are to have now."""
    wanted = sum(
        min(job.parallelism, job.completions - job.succeeded - job.failed_indexes)
        for job in own
        if not (job.complete or job.failure or job.suspend or job.deleting)
    )
    return wanted > 0 and wanted > sum(1 for pod in pods if pod.stage is not Stage.ENDED)
