"""Objects that the planner cannot work with, quarantined so that all others are planned.

One that changed is tried again at once, any other after a time that doubles from one minute to
thirty. What failed in the trial is quarantined again without another search, so a trial costs the
others one plan. Kept in memory: a new leader finds the same culprits in its first cycle.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.core.quarantine import ObjectRef, ObjectType
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.runtime.common.events import Events, InvolvedObject
from gpu_scheduler.state.cluster_state import ClusterState

_SECONDS = Backoff(60.0, 1800.0)
REASON = "SetAside"
_MOST_CHARS = 300  # of an exception, in a sentence

Say = Callable[[InvolvedObject, str, str], None]
"""Object, reason and message of a warning."""


def warn(events: Events) -> Say:
    """Warnings as Events."""
    return lambda subject, reason, message: events.say(subject, "Warning", reason, message)


@dataclass(slots=True)
class _Entry:
    why: str
    content: object  # of the object when it was quarantined
    until: float  # monotonic seconds
    times: int  # that it was quarantined before this one


class Quarantine:
    """Which objects are quarantined, and why."""

    def __init__(self, state: ClusterState, say: Say, *, clock: Callable[[], float]) -> None:
        """``say`` is told of each object once it is quarantined; ``clock``: monotonic seconds."""
        self._state = state
        self._say = say
        self._clock = clock
        self._entries: dict[ObjectRef, _Entry] = {}

    def gone(self) -> set[ObjectRef]:
        """What is not planned with now; those that are to be tried again are not among them."""
        now = self._clock()
        for ref, entry in tuple(self._entries.items()):
            content = self._content(ref)
            if content is None:
                self.clear((ref,))
            elif content != entry.content:
                entry.content = content
                entry.until = now
        return {ref for ref, entry in self._entries.items() if entry.until > now}

    def trial(self, gone: Collection[ObjectRef]) -> set[ObjectRef]:
        """What is tried again, where ``gone`` is not planned with."""
        return self._entries.keys() - gone

    def put(self, ref: ObjectRef, error: BaseException) -> None:
        """Quarantine an object, for longer each time."""
        before = self._entries.get(ref)
        times = before.times + 1 if before is not None else 0
        why = _why(error)
        content = self._content(ref)
        until = self._clock() + _SECONDS.delay_seconds(times)
        self._entries[ref] = _Entry(why, content, until, times)
        self._touch(ref)
        if subject := self._subject(ref):
            self._say(subject, REASON, why)

    def clear(self, refs: Collection[ObjectRef]) -> None:
        """Nothing is wrong with these any more."""
        for ref in refs:
            if self._entries.pop(ref, None) is not None:
                self._touch(ref)

    def next_trial(self) -> float | None:
        """When the next one is to be tried again, monotonic seconds."""
        return min((entry.until for entry in self._entries.values()), default=None)

    def job(self, key: JobKey) -> str:
        """Why a job is quarantined; empty when it is not."""
        return self._of(ObjectType.JOB, key)

    def project(self, name: ProjectName) -> str:
        """Why a project is quarantined; empty when it is not."""
        return self._of(ObjectType.PROJECT, name)

    def nodes(self) -> list[str]:
        """Nodes that are quarantined, by name."""
        return sorted(each.name for each in self._entries if each.type is ObjectType.NODE)

    def counts(self) -> dict[str, int]:
        """How many are quarantined, by type."""
        return {each.value: sum(s.type is each for s in self._entries) for each in ObjectType}

    def _of(self, of: ObjectType, name: str) -> str:
        entry = self._entries.get(ObjectRef(of, name))
        return entry.why if entry is not None else ""

    def _content(self, ref: ObjectRef) -> object:
        """What of the object makes it worth another trial when it changes; None: it is gone."""
        state = self._state
        if ref.type is ObjectType.JOB:
            job = state.workloads.get(JobKey(ref.name))
            if job is not None:
                return job.uid, job.generation
            return ref.name if _holds_without_a_job(state, ref.name) else None
        if ref.type is ObjectType.PROJECT:
            record = state.projects.records.get(ProjectName(ref.name))
            return (record.uid, record.generation) if record is not None else None
        return state.ledger.node(ref.name)

    def _subject(self, ref: ObjectRef) -> InvolvedObject | None:
        state = self._state
        if ref.type is ObjectType.NODE:
            return InvolvedObject("Node", "", ref.name, ref.name)  # the uid that kubectl looks for
        if ref.type is ObjectType.PROJECT:
            record = state.projects.records.get(ProjectName(ref.name))
            uid = record.uid if record is not None else ""
            return InvolvedObject("GPUProject", "", ref.name, uid)
        key = JobKey(ref.name)
        job = state.gpujobs.get(key)
        if job is not None or key not in state.groups.records or state.waiting.has_pods(key):
            return (
                InvolvedObject.of_job(job) if job is not None else None
            )  # who waits says it anyway
        return InvolvedObject.of_pod(next(state.workloads.pods(key)))

    def _touch(self, ref: ObjectRef) -> None:
        """What is said of it may have changed."""
        state = self._state
        state.changes.replan(wake=False)
        key = JobKey(ref.name)
        if ref.type is ObjectType.JOB and state.workloads.get(key) is not None:
            state.changes.touch(key)


def _holds_without_a_job(state: ClusterState, key: str) -> bool:
    """A pod without a GPUJob, named as ``state.queue.running_pods`` does, that is there."""
    namespace, _, rest = key.partition("/")
    name = rest.removeprefix("pod ")
    return any(p.name == name and p.namespace == namespace for p in state.pods.known.values())


def _why(error: BaseException) -> str:
    text = str(error)
    said = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
    return (
        f"set aside: the scheduler could not work with this object ({type(error).__name__}: "
        f"{said}); all others go on. Change it, or delete it and make it again; it is tried again "
        "once it changes, and from time to time. This is a defect of the scheduler: please report "
        "it with the operator's log"
    )
