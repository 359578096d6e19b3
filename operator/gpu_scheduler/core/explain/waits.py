"""What a plan says of each job that waits: why its first group that did not start did not.

The first few jobs of a project, and those for which something is decided, are told about
themselves; all others are told what their signature is, so that each of thousands costs a look.
"""

from collections.abc import Iterable

from gpu_scheduler.core.eviction.deadlines import Deadlines
from gpu_scheduler.core.explain.reasons import MOST_TOLD, Explainer
from gpu_scheduler.core.model.decision import Reason, Verdict, Waits
from gpu_scheduler.core.model.request import JobKey, ProjectName, WaitingJob
from gpu_scheduler.core.queue.pod_group import PodGroup, Signature
from gpu_scheduler.core.queue.queues import Queue, Queues

Alone = dict[int, PodGroup | None]  # by number of the job in its queue: its first that waits
_NOTHING: Verdict = (Reason.INVALID, "")


class WaitMessages:
    """Says why the jobs of one cycle wait."""

    def __init__(
        self,
        queues: Queues,
        explainer: Explainer,
        deadlines: Deadlines,
        decided: Iterable[PodGroup],
    ) -> None:
        """``decided``: groups that are started, and those for which room is kept."""
        self._queues = queues
        self._explainer = explainer
        self._deadlines = deadlines
        self._decided: dict[ProjectName, dict[JobKey, WaitingJob]] = {}
        for group in decided:
            self._decided.setdefault(group.project.name, {})[group.job.key] = group.job

    def waits(self, queues: Iterable[Queue], orphans: Iterable[WaitingJob]) -> Waits:
        """Of all jobs; ``orphans``: those whose project does not exist, in order."""
        jobs: list[JobKey] = []
        verdicts: list[Verdict] = []
        positions: list[int] = []
        for queue in queues:
            mine, said = self._of_project(queue)
            jobs += mine
            verdicts += said
            positions += range(1, len(mine) + 1)
        last: dict[ProjectName, int] = {}
        for job in orphans:
            last[job.project] = last.get(job.project, 0) + 1
            jobs.append(job.key)
            verdicts.append((Reason.INVALID, f"project {job.project} does not exist"))
            positions.append(last[job.project])
        return Waits(jobs, verdicts, positions)

    def _of_project(self, queue: Queue) -> tuple[list[JobKey], list[Verdict]]:
        """The jobs that wait, and what is said of each."""
        heads, alone, alike = queue.heads, self._alone(queue), dict[Signature, Verdict]()
        own = self._tell(alone, alike)
        for at, batch in enumerate(heads):
            if len(alike) == len(queue.counts):
                break
            if batch.signature not in alike and at not in alone:
                alike[batch.signature] = self._explainer.explain(batch.group(0), MOST_TOLD + 1)
        jobs = [batch.job.key for batch in heads]
        verdicts = [alike.get(batch.signature, _NOTHING) for batch in heads]
        for at, verdict in own.items():
            verdicts[at] = verdict
        if self._deadlines.any:
            groups = (
                alone[at] if at in alone else batch.group(0) for at, batch in enumerate(heads)
            )
            verdicts = list(map(self._with_deadline, groups, verdicts))
        for at in sorted(alone.keys() - own.keys(), reverse=True):
            del jobs[at], verdicts[at]
        return jobs, verdicts

    def _alone(self, queue: Queue) -> Alone:
        """Jobs that are not told what others are told: their numbers in the queue."""
        decided = self._decided.get(queue.project.name, {})
        alone = {queue.place_of(job): self._first_of(job) for job in decided.values()}
        waiting = 0
        for at, batch in enumerate(queue.heads):
            if waiting == MOST_TOLD:
                break
            if at not in alone:
                alone[at] = batch.group(0)
            waiting += alone[at] is not None
        return alone

    def _tell(self, alone: Alone, alike: dict[Signature, Verdict]) -> dict[int, Verdict]:
        """What is said of these; and to those like them, as far as no room is kept for them."""
        explain, kept = self._explainer.explain, self._explainer.kept
        waiting = [(at, group) for at, group in sorted(alone.items()) if group is not None]
        own = {at: explain(group, n) for n, (at, group) in enumerate(waiting, 1)}
        for _, group in waiting:
            if group.signature not in alike and group.job.key not in kept:
                alike[group.signature] = explain(group, MOST_TOLD + 1)
        return own

    def _first_of(self, job: WaitingJob) -> PodGroup | None:
        return next(self._queues.groups_of(job.key), None)

    def _with_deadline(self, group: PodGroup | None, verdict: Verdict) -> Verdict:
        if group is None or group.job.key in self._explainer.freed:
            return verdict  # what it is owed is on its way
        words = self._deadlines.words(group)
        return (verdict[0], verdict[1] + words) if words else verdict
