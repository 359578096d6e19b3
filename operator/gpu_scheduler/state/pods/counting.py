"""How many pods a Job has, and whether its controller may yet delete some of them: ADR 0054.

The Job controller deletes pods beyond the parallelism of a Job, whichever it likes least by what it
has heard of them, and it may have heard of nothing for minutes. So while it may delete any, a pod
that has no place gets none, and the Job becomes no wider. All of it follows from the Job and its
pods as the API server has them, so a leader that takes over knows it too. Pure.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.pod import PodRecord, Stage


@dataclass(frozen=True, slots=True)
class PodCount:
    """The pods of a Job that have not ended and are not being deleted.

    Attributes:
        live: All of them.
        unplaced: Those that wait for a place of ours.
        running: Those that run.
        uncounted: Beside them, those that have ended or are being deleted, and whose end the Job's
            controller has not counted.
    """

    live: int = 0
    unplaced: int = 0
    running: int = 0
    uncounted: int = 0

    @property
    def placed(self) -> int:
        """Those that have a place, or that somebody else holds back: none of them may be lost."""
        return self.live - self.unplaced


def counted(pods: Iterable[PodRecord], assumed: Container[PodUID]) -> PodCount:
    """Count the pods of a Job; ``assumed``: those whose place is being written."""
    live = unplaced = running = uncounted = 0
    for pod in pods:
        if pod.stage is Stage.ENDED or pod.deleting:
            uncounted += pod.tracked
            continue
        live += 1
        unplaced += pod.stage is Stage.WAITING and pod.uid not in assumed
        running += pod.stage is Stage.RUNNING
    return PodCount(live, unplaced, running, uncounted)


def parallelism_of(job: JobRecord) -> int:
    """So many pods its controller lets be."""
    return 0 if job.suspend or job.ended or job.deleting else job.parallelism


def has_surplus(job: JobRecord, count: PodCount, asked: int = 0) -> bool:
    """Whether it has more pods than it is wide, by what we see or by what its controller counts.

    ``asked``: the parallelism that is being written.
    """
    return max(count.live, job.active) > max(parallelism_of(job), asked)


def shrinks(job: JobRecord, count: PodCount, asked: int = 0) -> bool:
    """Whether its controller may yet delete pods of it.

    One that was narrowed may until no pod without a place is left, for nobody knows which of them
    the controller has chosen, and when it counted.
    """
    if has_surplus(job, count, asked):
        return True
    return job.narrowed and count.unplaced > 0 and not asked


def knows_what_runs(job: JobRecord, count: PodCount) -> bool:
    """Whether the controller knows that all pods with a place run, so that it spares them.

    Pods that it knows to be ready are the last that it deletes. Those that were ready when it wrote
    its status are those with a place, where it counts as many pods as there are, or where none has
    ended since: it writes that before it lets go of a pod that has ended.
    """
    if not count.placed:
        return True
    if job.ready < count.placed or count.running < count.placed:
        return False
    return job.active == count.live or (job.active < count.live and not count.uncounted)
