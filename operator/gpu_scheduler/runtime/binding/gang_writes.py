"""The placements of gangs that are under way: the places of a gang are one decision.

When one fails, those not written yet are dropped and those written are released.
"""

from dataclasses import dataclass, field

from gpu_scheduler.core.model.request import JobKey, PodUID


@dataclass(slots=True)
class GangWrite:
    """Placements of one gang."""

    unsettled: int = 0
    failure: str = ""
    placed: list[PodUID] = field(default_factory=list)


class GangWrites:
    """Those of all gangs, by job."""

    def __init__(self) -> None:
        self._of: dict[JobKey, GangWrite] = {}

    def begin(self, job: JobKey) -> None:
        """One more placement of a gang is to be written."""
        self._of.setdefault(job, GangWrite()).unsettled += 1

    def settle(self, job: JobKey) -> None:
        """One of them has been written, or never will be."""
        gang = self._of.get(job)
        if gang is not None:
            gang.unsettled -= 1
            if not gang.unsettled:
                del self._of[job]

    def of(self, job: JobKey) -> GangWrite | None:
        """What is under way of a gang; None: nothing, or it is none."""
        return self._of.get(job)

    def abort(self, job: JobKey, why: str) -> None:
        """Place no more members of a gang, and say so of those whose write is under way."""
        gang = self._of.get(job)
        if gang is not None:
            gang.failure = gang.failure or why
