"""The pods that are known, and to which Job each belongs.

A pod's news that are older than what is known of it are none, and so is what is said of one that is
gone.
"""

from collections.abc import Iterator

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.jobs.departed import Departed
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.pod import PodRecord, record, without_stranger


class PodStore:
    """Records of pods by uid, and by the uid of their Job."""

    def __init__(self, holders_in: str) -> None:
        """``holders_in``: see ``state.pods.pod.record``."""
        self.known: dict[PodUID, PodRecord] = {}
        self.placeholders: dict[PodUID, PodRecord] = {}
        self.leaving: set[PodUID] = set()  # their eviction was decided here
        self._holders_in = holders_in
        self._of_job: dict[str, dict[PodUID, None]] = {}
        self._departed = Departed()

    def read(self, pod: Pod) -> PodRecord | None:
        """The record of a pod; None when its news are old."""
        new = record(pod, self._holders_in)
        old = self.known.get(new.uid)
        if self._departed.outdates(new.uid, new.version) or (old and old.version > new.version):
            return None
        return new

    def upsert(self, new: PodRecord) -> PodRecord | None:
        """Take a record over; answers the old one if that was another Job's."""
        old = self.known.get(new.uid)
        moved = old is not None and old.job_uid != new.job_uid
        if old is not None and moved:
            self._leave(old)
        self.known[new.uid] = new
        if new.holds:
            self.placeholders[new.uid] = new
        if new.job_uid:
            self._of_job.setdefault(new.job_uid, {})[new.uid] = None
        return old if moved else None

    def drop(self, uid: PodUID, *, gone: bool) -> PodRecord | None:
        """Forget a pod; ``gone``: what is said of it later is old."""
        if gone:
            self._departed.note(uid)
        self.placeholders.pop(uid, None)
        self.leaving.discard(uid)
        old = self.known.pop(uid, None)
        if old is not None:
            self._leave(old)
        return old

    def of_job(self, uid: str) -> Iterator[PodRecord]:
        """The pods of a Job."""
        return (self.known[pod] for pod in self._of_job.get(uid, ()))

    def number_of(self, uid: str) -> int:
        """How many pods of a Job are known, those that have ended included."""
        return len(self._of_job.get(uid, ()))

    def part_strangers(self, job: JobRecord) -> list[PodRecord]:
        """Pods seen before the Job that they call theirs, and are of another namespace."""
        strangers = []
        for pod in tuple(self.of_job(job.uid)):
            parted = without_stranger(pod, job)
            if parted is not pod:
                self.upsert(parted)
                strangers.append(pod)
        return strangers

    def _leave(self, pod: PodRecord) -> None:
        siblings = self._of_job.get(pod.job_uid, {})
        siblings.pop(pod.uid, None)
        if not siblings:
            self._of_job.pop(pod.job_uid, None)
