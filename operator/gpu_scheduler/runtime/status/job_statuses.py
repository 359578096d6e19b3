"""What all GPUJobs are to say, and the Events that a user should see in ``kubectl describe``.

What one says is worked out in ``status``, when its turn to write has come.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpu_scheduler.api.condition import ConditionType, StatusBody
from gpu_scheduler.api.gpujob import FINISHED, Phase
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.states import event_kind
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.write import Write
from gpu_scheduler.kube.paths import of_group
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.runtime.eviction.preemption import Preemptor
from gpu_scheduler.runtime.informers.custom_resources import GPUJOBS
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.status.status_writer import Statuses, merged
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, namespace_of

# On the way to a running pod: each lasts for some milliseconds, unless something is wrong, or the
# Job controller has much to do.
_TRANSIENT = frozenset(
    {
        Reason.CREATING_JOB,
        Reason.CREATING_PODS,
        Reason.WAITING_FOR_PLAN,
        Reason.PLACING,
        Reason.STARTING,
    }
)
_MAY_LAST_SECONDS = 5.0
_FIRST_WORDS_SECONDS = 1.0  # of a job that has said nothing yet
_OVER_SECONDS = 1.5  # where the reason that stands there is over: nobody reads it for two seconds


def turned_bad(before: StatusBody, after: StatusBody) -> list[tuple[str, str]]:
    """Reason and message of what agents warn of, as far as the status did not say so before."""
    known = {
        (c.get("type"), c.get("status"), c.get("reason")) for c in before.get("conditions") or ()
    }
    return [
        (c["reason"], c.get("message", ""))
        for c in after.get("conditions") or ()
        if c["type"] in (ConditionType.PROTECTED, ConditionType.DEVICES_HEALTHY)
        and c["status"] == "False"
        and (c["type"], c["status"], c["reason"]) not in known
    ]


@dataclass(frozen=True, slots=True)
class JobLinks:
    """What others know of jobs, and are told.

    Attributes:
        context: what the operator's parts know of a job.
        finished: told of each job whose end was written.
        numbers: some of the jobs that may wait with other numbers.
    """

    context: Callable[[GPUJobRecord], JobContext]
    finished: Callable[[JobKey], None]
    numbers: Callable[[int], Iterable[JobKey]] = lambda most: ()


class JobStatuses(Statuses):
    """``Statuses`` of the writer."""

    kind = GPUJOBS

    def __init__(
        self,
        state: ClusterState,
        events: Events,
        preemption: Preemptor,
        links: JobLinks,
        *,
        now: Callable[[], str],
    ) -> None:
        """``preemption`` forgets a job that has its pods again; ``now`` dates conditions."""
        self._state = state
        self._events = events
        self._preemption = preemption
        self._links = links
        self._now = now

    def touched(self) -> Iterable[str]:
        """See ``Statuses``."""
        return self._state.changes.take_touched()

    def minor(self, most: int) -> Iterable[str]:
        """See ``Statuses``."""
        return self._links.numbers(most)

    def uid(self, key: str) -> str | None:
        """See ``Statuses``."""
        job = self._state.gpujobs.get(JobKey(key))
        return None if job is None else job.uid

    def namespace(self, key: str) -> str:
        """See ``Statuses``."""
        return namespace_of(key)

    def is_dear(self, key: str) -> bool:
        """See ``Statuses``."""
        job = self._state.gpujobs.get(JobKey(key))
        return job is not None and job.too_large

    def is_silent(self, key: str) -> bool:
        """See ``Statuses``."""
        job = self._state.gpujobs.get(JobKey(key))
        return job is not None and not job.shown.get("phase")

    def write(self, key: str, uid: str, patch: StatusBody, after: StatusBody) -> Write:
        """See ``Statuses``."""
        job = self._state.gpujobs[JobKey(key)]
        path = of_group(GROUP, VERSION, GPUJOBS, job.namespace, job.name, "status")
        return merged(path, uid, patch)

    def status(self, key: str) -> tuple[StatusBody, StatusBody]:
        """See ``Statuses``."""
        state, job = self._state, self._state.gpujobs[JobKey(key)]
        status = gpujob_status(
            job,
            state.workloads.jobs(job.key),
            state.workloads.pods(job.key),
            project=state.projects.owner(job.namespace),
            now=self._now(),
            known=self._links.context(job),
        )
        if status.preempted_by is None:
            self._preemption.forget(job.key)
        if strangers := state.jobs.to_tell(job):
            self._events.say(InvolvedObject.of_job(job), "Warning", "StrangeJob", strangers)
        after = status.to_json()
        if after == job.shown != job.status:  # an earlier write that had no answer
            self.written(key, job.shown, after)
        return job.shown, after

    def is_minor(self, key: str, patch: StatusBody) -> bool:
        """See ``Statuses``; what somebody else wrote is put right at once."""
        return patch.keys() == {"queuePosition"} and self._is_ours(key)

    def may_last_seconds(self, key: str, patch: StatusBody, after: StatusBody) -> float:
        """See ``Statuses``; what somebody else wrote is put right at once."""
        reason = after.get("reason")
        passes = (
            reason == Reason.FINISHING
            or (after.get("phase") == Phase.PENDING and reason in _TRANSIENT)
            or patch.keys() == {"heldRoom"}  # most that is nominated has its pod in milliseconds
        )
        if not passes or not self._is_ours(key):
            return 0.0
        if self.is_silent(key):
            return _FIRST_WORDS_SECONDS
        before = self._state.gpujobs[JobKey(key)].shown.get("reason")
        over = "reason" in patch and before and before not in _TRANSIENT
        return _OVER_SECONDS if over else _MAY_LAST_SECONDS

    def _is_ours(self, key: str) -> bool:
        """Whether what stands there is what we said last."""
        job = self._state.gpujobs[JobKey(key)]
        return job.shown == job.status

    def written(self, key: str, before: StatusBody, after: StatusBody) -> None:
        """Keep it, and tell those who wait for it.

        What the watch has shown since the write was sent may be older than that, or an earlier
        write that arrived later: then it is looked at again.
        """
        job = self._state.gpujobs.get(JobKey(key))
        if job is None:
            return
        said, job.status, job.stored = job.status, after, False
        if job.shown is before:
            job.shown = after
        elif job.shown != after:
            self._state.changes.touch(job.key)
        self._report(InvolvedObject.of_job(job), said, after)
        if after.get("phase") != said.get("phase"):
            self._state.projects.touch(job.namespace)  # it counts the jobs that run
        if job.finished:
            self._links.finished(job.key)

    def _report(self, subject: InvolvedObject, before: StatusBody, after: StatusBody) -> None:
        reason, phase, message = (str(after.get(k) or "") for k in ("reason", "phase", "message"))
        told = reason == Reason.PREEMPTED  # when it was decided, with more detail
        kind = event_kind(reason)
        if kind and reason != (before.get("reason") or "") and not told:
            self._events.say(subject, kind, reason, message)
        if after.get("firstFailure") and not before.get("firstFailure"):
            self._events.say(subject, "Warning", "PodFailed", after["firstFailure"])
        if phase != before.get("phase") and phase in FINISHED:
            kind = "Warning" if phase == Phase.FAILED else "Normal"
            self._events.say(subject, kind, phase, message or "every index is done")
        for bad, why in turned_bad(before, after):
            self._events.say(subject, "Warning", bad, why)
