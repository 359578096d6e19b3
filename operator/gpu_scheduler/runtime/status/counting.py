"""Which indexes of a job are over, and why the first one failed.

A pod that has ended counts at once, although its Job counts it a second later: for each Job what it
says or what its pods show, whichever is more, so a count never falls while news arrive in any
order. A pod that was evicted, rejected or deleted has not failed. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.wording import clip
from gpu_scheduler.state.jobs.job import JobRecord
from gpu_scheduler.state.pods.containers import Trouble
from gpu_scheduler.state.pods.pod import PodRecord

_LIST_CHARS = 60  # of failed indexes
_FIRST_CHARS = 600

Failed = tuple[PodRecord, Trouble]


@dataclass(frozen=True, slots=True)
class Counted:
    """Indexes that succeeded, pods that failed (several of an index), indexes given up."""

    succeeded: int
    failed: int
    failed_indexes: int

    @property
    def over(self) -> int:
        """Indexes that do not run again."""
        return self.succeeded + self.failed_indexes


def count(own: Iterable[JobRecord], ended: Iterable[PodRecord], bad: Iterable[Failed]) -> Counted:
    """What is over, of all Jobs of a GPUJob (``bad``: the ``failures`` among its ended pods)."""
    good = Counter([pod.job_uid for pod in ended if pod.phase == "Succeeded"])
    failed = Counter(pod.job_uid for pod, _ in bad)
    jobs = tuple(own)
    return Counted(
        sum(max(job.succeeded, min(good[job.uid], job.completions)) for job in jobs),
        sum(max(job.failed, failed[job.uid]) for job in jobs),
        sum(job.failed_indexes for job in jobs),
    )


def failures(ended: Iterable[PodRecord]) -> list[Failed]:
    """The pods that failed by themselves, in the order in which they did."""
    found = [
        (pod, pod.failure)
        for pod in ended
        if pod.failure is not None
        and pod.ran
        and not (pod.disruption or pod.pruned or pod.deleting)
    ]
    return sorted(found, key=lambda each: (each[1].at, each[0].index, each[0].version))


def tried_again(
    own: Iterable[JobRecord], ended: Iterable[PodRecord], bad: Sequence[Failed]
) -> list[Failed]:
    """Failures of indexes that are not over."""
    if not bad:
        return []
    over = {(job.uid, index) for job in own for each in (job.completed, job.lost) for index in each}
    over |= {(pod.job_uid, pod.index) for pod in ended if pod.phase == "Succeeded"}
    return [each for each in bad if (each[0].job_uid, each[0].index) not in over]


def first(bad: Sequence[Failed], before: str) -> str:
    """The first failure of all, in one sentence; ``before``: what was said of it already."""
    if before or not bad:
        return before
    pod, failure = bad[0]
    at = f"{failure.at}: " if failure.at else ""
    return clip(f"{at}index {pod.index} (pod {pod.name}): {failure.message}", _FIRST_CHARS)


def why_failed(own: Iterable[JobRecord], bad: Iterable[Failed]) -> tuple[str, str]:
    """Reason and message of a job that has failed; empty ones while none of its Jobs has.

    The first failure of an index that was given up comes first.
    """
    job = next((job for job in own if job.failure), None)
    if job is None:
        return "", ""
    role = f"role {job.role}: " if job.role else ""
    found = [each for each in bad if each[0].job_uid == job.uid]
    lost = set(job.lost)
    given_up = [each for each in found if each[0].index in lost] or found
    if not given_up:
        return Reason.JOB_FAILED, role + job.failure
    pod, failure = given_up[0]
    tries = sum(1 for other, _ in found if other.index == pod.index)
    text = f"{role}index {pod.index} failed: {failure.message}"
    if tries > 1:
        text += f"; it was tried {tries} times"
    if job.failed_indexes > 1:
        listed = clip(job.lost_indexes.replace(",", ", "), _LIST_CHARS)
        text += f"; {job.failed_indexes} indexes failed in all: {listed}"
    return failure.reason, text
