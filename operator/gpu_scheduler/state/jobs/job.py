"""GPUJobs and their batch/v1 Jobs as last seen.

A GPUJob's request (devices per container, models) is parsed once per generation. Which pods belong
to it follows from controller references alone: pod -> Job (uid) -> GPUJob (uid); labels are for
people.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gpu_scheduler.api.gpujob import FINISHED, MAX_PODS, GPUJobSpec, Phase
from gpu_scheduler.api.moved import NEVER, Mark, marks
from gpu_scheduler.api.names import FIRST_TRIAL, NARROWED, SEGMENT
from gpu_scheduler.api.numbers import number
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.kube.objects import OF_THE_COLLECTOR, Job, Pod
from gpu_scheduler.state.jobs.role_requests import RoleRequest, role_requests_of

_MOST_CHARS = 2048  # of why a Job failed
_INDEX_CHARS = 7  # of one index below 100,000 and what parts it from the next


def job_key(namespace: str, name: str) -> JobKey:
    """The key of a GPUJob: 'namespace/name'."""
    return JobKey(f"{namespace}/{name}")


def namespace_of(key: str) -> str:
    """The namespace of a GPUJob, or of a group of pods without one."""
    return key.partition("/")[0]


def epoch_seconds(timestamp: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; 0 when there is none that can be read.

    Not every time is the API server's: those in status and annotations are as somebody wrote them.
    """
    if not timestamp:  # most pods and jobs say nothing: an exception costs as much as a time
        return 0.0
    try:
        time = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def changed_seconds(status: Mapping[str, Any], value: str, *types: str) -> float:
    """When a condition of one of these types took this value, epoch seconds; 0: none has it."""
    return max(
        (
            epoch_seconds(str(each.get("lastTransitionTime") or ""))
            for each in status.get("conditions") or ()
            if each.get("type") in types and each.get("status") == value
        ),
        default=0.0,
    )


@dataclass(slots=True)
class GPUJobRecord:
    """A GPUJob. ``spec`` is None when it cannot be parsed; ``problem`` says why.

    What is remembered of it in its status is ours: who else writes there is overwritten (ADR 0057).
    ``said`` is the spec as it stands; in ``spec`` GPUClasses have been put in place of their names
    and shapes. ``unknown``: which shape does not exist at present; no pod starts then.
    """

    key: JobKey
    namespace: str
    name: str
    uid: str
    generation: int
    created: str
    deleting: bool
    spec: GPUJobSpec | None
    min_compute: tuple[int, int] = (0, 0)
    problem: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)  # as we said it; at first as it is
    shown: Mapping[str, Any] = field(default_factory=dict)  # as the API server last showed it
    stored: bool = True  # the status is as it was found, and nobody has asked the objects yet
    said: GPUJobSpec | None = None
    unknown: str = ""
    problem_as: Reason = Reason.INVALID  # what ``problem`` is; else no mistake of what it says
    unread: bool = False  # there was no room for what it says
    too_large: bool = False  # to be read, and for the API server to write to without much ado
    unfollowed: str = ""  # why its Job stays as it was; what runs goes on
    templates: Mapping[str, Pod] | None = None  # the pods of each role; None until it is accepted
    unhonoured: str = ""  # what its own templates say that does not count; known with ``templates``
    finalizers: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()  # that its Jobs inherit
    alike: str = ""  # of pods that ask by themselves, see ``Doubts``; else it follows from the spec
    elastic: bool = False  # a gang whose size is the least: beyond it pods start one by one
    began: float | None = None  # ``created`` as far as it is believed; see ``beginnings``

    _requests: Mapping[str, RoleRequest] = field(default_factory=dict)
    _requests_of: GPUJobSpec | None = None  # the spec that they were worked out from

    @property
    def requests(self) -> Mapping[str, RoleRequest]:
        """What the pods ask for, by role; nothing where the spec cannot be read."""
        if self._requests_of is not self.spec:
            self._requests = {} if self.spec is None else role_requests_of(self.spec)
            self._requests_of = self.spec
        return self._requests

    @property
    def complaint(self) -> str:
        """What its owner has to mend; empty = nothing."""
        return self.problem or self.unfollowed

    @property
    def unplanned(self) -> bool:
        """Whether it waits and no plan looks at it: it is not judged yet, or has to be mended."""
        waits = self.status.get("phase") in (None, Phase.PENDING) and not self.deleting
        return waits and (self.templates is None or bool(self.problem))

    @property
    def kept_by(self) -> list[str]:
        """Finalizers that keep the object once it is deleted, beside the garbage collector's."""
        return [each for each in self.finalizers if each not in OF_THE_COLLECTOR]

    @property
    def judged(self) -> Hashable:
        """What a plan depends on."""
        return self.uid, self.generation, self.deleting, self.problem

    @property
    def created_seconds(self) -> float:
        """When it was created, epoch seconds."""
        return epoch_seconds(self.created) if self.began is None else self.began

    @property
    def finished(self) -> bool:
        """Whether we, or an earlier leader, have said that it has ended."""
        return self.status.get("phase") in FINISHED

    def own(self, jobs: Iterable["JobRecord"]) -> list["JobRecord"]:
        """Those of ``jobs`` that are this GPUJob's and are not being deleted."""
        return [job for job in jobs if job.owner_uid == self.uid and not job.deleting]


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A batch/v1 Job that names a GPUJob as its owner; whether it is one of ours, see ``own_jobs``.

    What it says of indexes at or beyond ``completions``, or ``MAX_PODS``, counts as not said.
    """

    uid: str
    namespace: str
    name: str
    owner_uid: str  # of the GPUJob
    owner: JobKey
    version: int
    deleting: bool
    parallelism: int
    completions: int
    suspend: bool
    succeeded: int
    failed: int
    failed_indexes: int  # that are not tried again
    complete: bool
    failure: str  # message of the Failed condition; empty = not failed
    created: str = ""
    role: str = ""  # of the GPUJob; empty where it has no roles
    completed_indexes: str = ""  # such as '1,3-5'
    lost_indexes: str = ""  # those of failed_indexes
    segment: int | None = None  # its number, of a sweep
    first_trial: int = 0  # of a sweep's segment; index + this = trial
    moves: Mapping[int, Mark] = field(default_factory=lambda: NEVER)  # by index
    active: int = 0  # pods, as its controller counts them
    ready: int = 0
    narrowed: bool = False  # see state.counting

    @property
    def ended(self) -> bool:
        """Whether the Job controller has said its last word."""
        return self.complete or bool(self.failure)

    @property
    def makes(self) -> Hashable:
        """What decides how many pods it makes."""
        counts = self.parallelism, self.completions, self.succeeded, self.failed_indexes
        return counts, self.suspend, self.ended

    @property
    def shrinking(self) -> Hashable:
        """What decides whether its controller may yet delete pods."""
        goes = self.suspend, self.ended, self.deleting
        return goes, self.parallelism, self.active, self.narrowed

    @property
    def indexes(self) -> range:
        """All of its indexes."""
        return range(min(self.completions, MAX_PODS))

    @property
    def ended_with(self) -> int:
        """How many indexes it had when it ended.

        The Job controller decides that a Job is complete, and says so when the last pod is gone:
        its completions can have been other ones in between.
        """
        return min(self.completions, self.succeeded) if self.complete else self.completions

    @property
    def completed(self) -> Iterator[int]:
        """Indexes that have succeeded."""
        return (i for each in self._ranges(self.completed_indexes) for i in each)

    @property
    def lost(self) -> Iterator[int]:
        """Indexes that have failed for good."""
        return (i for each in self._ranges(self.lost_indexes) for i in each)

    def _ranges(self, text: str) -> Iterator[range]:
        return index_ranges(text, len(self.indexes))


def _role(job: str, gpujob: str) -> str:
    """The role whose Job this is, by its name (``api.parts``)."""
    return job.removeprefix(f"{gpujob}-") if job != gpujob else ""


def job_record(job: Job) -> JobRecord | None:
    """The record of a Job, or None when no GPUJob controls it."""
    meta, status = job.metadata, job.status
    owner = next((o for o in meta.owner_references if o.controller and o.kind == "GPUJob"), None)
    if owner is None:
        return None
    ended = {c.type: c for c in status.conditions if c.status == "True"}
    failed, complete = ended.get("Failed"), ended.get("Complete")
    completions = job.spec.completions or 0
    return JobRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        owner_uid=owner.uid,
        owner=job_key(meta.namespace, owner.name),
        version=int(meta.resource_version or 0),
        deleting=bool(meta.deletion_timestamp),
        parallelism=job.spec.parallelism or 0,
        completions=completions,
        suspend=job.spec.suspend,
        succeeded=status.succeeded,
        failed=status.failed,
        failed_indexes=count_indexes(status.failed_indexes, min(completions, MAX_PODS)),
        complete=complete is not None,
        failure=clip(failed.message or failed.reason or "failed", _MOST_CHARS) if failed else "",
        created=meta.creation_timestamp,
        role=_role(meta.name, owner.name) if SEGMENT not in meta.annotations else "",
        completed_indexes=status.completed_indexes,
        lost_indexes=status.failed_indexes,
        segment=number(meta.annotations.get(SEGMENT, "")),
        first_trial=number(meta.annotations.get(FIRST_TRIAL, "")) or 0,
        moves=marks(meta.annotations),
        active=status.active,
        ready=status.ready,
        narrowed=NARROWED in meta.annotations,
    )


def index_ranges(text: str, size: int) -> Iterator[range]:
    """The indexes below ``size`` that a text such as '1,3-5' names, ascending, none of them twice.

    Who may write the status of Jobs may write anything there. So what is no such text names
    nothing, nothing beyond the Job's own size counts, and a long range costs no more than a short
    one until somebody walks it: then at most ``size`` steps.
    """
    if len(text) > _INDEX_CHARS * size:
        return
    least = 0
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first = number(low)
        last = number(high) if dash else first
        if first is None or last is None or first < least:
            continue
        found = range(first, min(last + 1, size))
        if found:
            yield found
            least = found.stop


def count_indexes(text: str, size: int) -> int:
    """How many indexes below ``size`` the text names."""
    return sum(map(len, index_ranges(text, size)))
