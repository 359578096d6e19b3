"""Who comes first.

Between projects the one that holds the smallest part of its fair share; inside a project
interactive before training, then high priority, then age, then the key. ``project_rank`` is the
one place that says what a fair order between projects is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Protocol, TypeVar

from gpu_scheduler.core.model.request import Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.snapshot import Snapshot

JobRank = tuple[bool, float, float, str]
ProjectRank = tuple[float, int, str]
Done = TypeVar("Done")
FIRST: JobRank = (False, -math.inf, -math.inf, "")  # before all others


class HasProject(Protocol):
    """What belongs to a project."""

    @property
    def project(self) -> Project:
        """Whose it is."""


def job_rank(job: WaitingJob) -> JobRank:
    """Sort key of a job among those of its project."""
    return (not job.interactive, -job.priority, job.created, job.key)


def project_rank(name: ProjectName, allocated_milli: int, share_milli: int) -> ProjectRank:
    """Sort key of a project; grows with what the project holds."""
    share = allocated_milli / share_milli if share_milli > 0 else math.inf
    return (share, allocated_milli, name)


class FairOrder:
    """The order of projects within one cycle, as it changes with what they get."""

    def __init__(self, snapshot: Snapshot, shares_milli: Mapping[ProjectName, int]) -> None:
        self._snapshot = snapshot
        self.shares_milli = shares_milli

    def by_turns(
        self, queues: Sequence[HasProject], turns: Sequence[Iterator[Done]]
    ) -> Iterator[Done]:
        """What the turns of the queues' projects do; who has the smallest part goes next."""
        order = [(self._rank(queue), i) for i, queue in enumerate(queues)]
        heapify(order)
        while order:
            at = order[0][1]
            done = next(turns[at], None)
            if done is None:
                heappop(order)
            else:
                yield done
                heapreplace(order, (self._rank(queues[at]), at))

    def _rank(self, queue: HasProject) -> ProjectRank:
        name = queue.project.name
        return project_rank(name, self._snapshot.allocated_milli(name), self.shares_milli[name])
