"""Which Jobs are ours, among those that name a GPUJob as their owner: ADR 0032.

Whoever may edit a namespace can make a Job with our labels, owner reference and annotations. One is
believed only under a name that we would give, of no more indexes than its GPUJob has there, and
with trials that no other Job of the sweep has. A Job that does not fit is nobody's: its pods are
like those whose Job was not seen yet, and nothing is placed. Before its GPUJob is known a Job is
believed, for then nothing of it is placed or counted; it is judged when that comes.
"""

from collections.abc import Iterable, Iterator

from gpu_scheduler.api.names import segment_name
from gpu_scheduler.api.parts import job_name
from gpu_scheduler.api.segments import SEGMENT_TRIALS
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.state.jobs.departed import Departed
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord


def misfit(job: JobRecord, gpujob: GPUJobRecord | None) -> str:
    """Why a Job is none that we would make for this GPUJob; empty = it may be one."""
    if gpujob is None or gpujob.uid != job.owner_uid or gpujob.spec is None:
        return ""
    spec = gpujob.spec
    if spec.sweep is not None:
        return _misfit_segment(job, gpujob.name, spec.total_pods)
    sizes = {role.name: role.replicas for role in spec.roles or ()} or {"": spec.total_pods}
    if job.segment is not None or job.name not in (job_name(gpujob.name, role) for role in sizes):
        return f"no Job of {gpujob.name} is called so"
    if job.completions > sizes[job.role]:
        return f"it has {job.completions} completions, and {sizes[job.role]} belong to it"
    if job.complete and job.ended_with < sizes[job.role]:
        return f"it ended with {job.ended_with} completions, and {sizes[job.role]} belong to it"
    return ""


def _misfit_segment(job: JobRecord, name: str, trials: int) -> str:
    number, first = job.segment, job.first_trial
    if number is None or job.name != segment_name(name, number):
        return f"no Job of the sweep {name} is called so"
    if job.completions > SEGMENT_TRIALS or first + job.completions > trials:
        return (
            f"it has {job.completions} trials from {first} on; the sweep has {trials}, and a Job "
            f"at most {SEGMENT_TRIALS}"
        )
    if not number <= first <= number * SEGMENT_TRIALS:
        return f"its first trial cannot be {first} if it is segment {number}"
    return ""


def _overlap(one: JobRecord, other: JobRecord) -> bool:
    return (
        one.owner_uid == other.owner_uid
        and one.uid != other.uid
        and one.segment is not None
        and other.segment is not None
        and one.first_trial < other.first_trial + other.completions
        and other.first_trial < one.first_trial + one.completions
    )


class JobStore:
    """Jobs by uid and by GPUJob: those that are believed, those that are not, those that went."""

    def __init__(self) -> None:
        """Start empty."""
        self.believed: dict[str, JobRecord] = {}
        self.deleted: dict[JobKey, list[JobRecord]] = {}  # that the watch shows no more
        self._of: dict[JobKey, dict[str, None]] = {}  # in the order in which they were seen
        self._misfits: dict[str, tuple[JobRecord, str]] = {}  # with the reason
        self._misfits_of: dict[JobKey, dict[str, None]] = {}
        self._departed = Departed()
        self._told: dict[JobKey, str] = {}  # GPUJob -> its uid, whose user was told of misfits

    def of(self, key: JobKey) -> Iterator[JobRecord]:
        """Those of a GPUJob that are believed; also of an earlier one of its name."""
        return (self.believed[uid] for uid in self._of.get(key, ()))

    def outdates(self, job: JobRecord) -> bool:
        """Whether these news are from before what is known."""
        known = self._record(job.uid)
        if known is not None and known.version > job.version:
            return True
        return self._departed.outdates(job.uid, job.version)

    def knows(self, uid: str) -> bool:
        """Whether a Job is there, believed or not."""
        return self._record(uid) is not None

    def judge(self, job: JobRecord, gpujob: GPUJobRecord | None) -> list[JobRecord]:
        """Take over the news of a Job; those that were believed till now and are no more.

        Of two that have the same trials the older one is believed, or the one that had them.
        """
        known, why = self.believed.get(job.uid), misfit(job, gpujob)
        rivals: list[JobRecord] = []
        if not why and job.segment is not None and (known is None or _place(known) != _place(job)):
            rivals = [other for other in self.of(job.owner) if _overlap(other, job)]
            # One that was changed loses to those that were there before.
            changed = known is not None
            if other := next((r for r in rivals if changed or _age(r) < _age(job)), None):
                why = f"Job {other.name} has trials of it"
        if why:
            return self._disbelieve(job, why)
        self._drop_misfit(job.uid)
        if known is not None and known.owner != job.owner:
            self._unlist(self._of, known)
        self.believed[job.uid] = job
        self._of.setdefault(job.owner, {})[job.uid] = None
        lost = (self._disbelieve(rival, f"Job {job.name} has trials of it") for rival in rivals)
        return [each for one in lost for each in one]

    def enter(self, group: JobRecord) -> None:
        """A group of pods without a GPUJob: it is nobody's claim, and always believed."""
        self.believed[group.uid] = group
        self._of.setdefault(group.owner, {})[group.uid] = None

    def leave(self, uid: str) -> None:
        """Such a group is no more."""
        self._drop(uid)

    def depart(self, uid: str) -> JobRecord | None:
        """A Job is gone; what was known of it."""
        old = self._record(uid)
        if old is None:
            return None
        self._drop(uid)
        self._drop_misfit(uid)
        self._departed.note(uid, old.version)  # its label may come back
        return old

    def claims(self, key: JobKey) -> Iterable[JobRecord]:
        """All Jobs that say that they are a GPUJob's, the oldest first."""
        misfits = (self._misfits[uid][0] for uid in self._misfits_of.get(key, ()))
        return sorted([*self.of(key), *misfits], key=_age)

    def to_tell(self, gpujob: GPUJobRecord) -> str:
        """What to tell the user of Jobs that are not believed, once; empty if nothing."""
        uids = self._misfits_of.get(gpujob.key)
        if uids is None or self._told.get(gpujob.key) == gpujob.uid:
            return ""
        misfits = (self._misfits[uid] for uid in uids)
        found = [(job.name, why) for job, why in misfits if job.owner_uid == gpujob.uid]
        if not found:
            return ""
        self._told[gpujob.key] = gpujob.uid
        more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
        name, why = found[0]
        return (
            f"Job {name}{more} says that it belongs to this GPUJob and does not: {why}. None of "
            "its pods starts; whoever made it deletes it (kubectl delete job)"
        )

    def forget(self, key: JobKey) -> None:
        """A GPUJob is gone."""
        self._told.pop(key, None)
        self.deleted.pop(key, None)

    def _disbelieve(self, job: JobRecord, why: str) -> list[JobRecord]:
        self._drop_misfit(job.uid)
        self._misfits[job.uid] = (job, why)
        self._misfits_of.setdefault(job.owner, {})[job.uid] = None
        old = self._drop(job.uid)
        return [] if old is None else [old]

    def _record(self, uid: str) -> JobRecord | None:
        strange = self._misfits.get(uid)
        return self.believed.get(uid) if strange is None else strange[0]

    def _drop_misfit(self, uid: str) -> None:
        strange = self._misfits.pop(uid, None)
        if strange is not None:
            self._unlist(self._misfits_of, strange[0])

    def _drop(self, uid: str) -> JobRecord | None:
        old = self.believed.pop(uid, None)
        if old is not None:
            self._unlist(self._of, old)
        return old

    @staticmethod
    def _unlist(lists: dict[JobKey, dict[str, None]], job: JobRecord) -> None:
        del lists[job.owner][job.uid]
        if not lists[job.owner]:
            del lists[job.owner]


def _place(job: JobRecord) -> tuple[int | None, int, int]:
    return (job.segment, job.first_trial, job.completions)


def _age(job: JobRecord) -> tuple[str, str]:
    return (job.created, job.uid)
