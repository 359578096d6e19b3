"""When what is seen began, by our own clock.

A stamp is some other machine's clock, and that may have been set. So whatever is seen to begin
began when it was seen; its stamp is believed as far as news take their time, so that it says who
was first, and the next leader finds the same. What was there before we looked began by its stamp,
and never in the future.
"""

from collections.abc import Callable

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.state.jobs.job import epoch_seconds

MOST_LAG_SECONDS = 5.0  # of news, and of clocks that agree


class Beginnings:
    """Judges stamps, and remembers of pods what it found; in epoch seconds."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        """``now``: epoch seconds, only ever more; None: every stamp is right."""
        self.now = now or Clock().now
        self._judges = now is not None
        self._of: dict[PodUID, tuple[tuple[str, float], ...]] = {}  # by what stamp, and when
        self.live = False
        """Whether what is new to us is new; not while everything is listed for the first time."""

    def order(self, stamp: float) -> float:
        """What says who was first, among those that are told of at about the same time."""
        if not (self.live and self._judges):
            return stamp
        now = self.now()
        return stamp if abs(now - stamp) <= MOST_LAG_SECONDS else now

    def of(self, stamp: float) -> float:
        """When it began, to measure its age by; to be asked once, when it is first seen."""
        return self.since(self.order(stamp))

    def since(self, moment: float) -> float:
        """A moment, if it is not in the future; else now."""
        return min(moment, self.now()) if self._judges else moment

    def of_pod(self, uid: PodUID, stamp: str) -> float:
        """The same of what a stamp of a pod tells, whoever asks and however often."""
        known = self._of.get(uid, ())
        for said, at in known:
            if said == stamp:
                return at
        at = self.of(epoch_seconds(stamp))
        self._of[uid] = (*known[-1:], (stamp, at))
        return at

    def forget(self, uid: PodUID) -> None:
        """A pod is gone."""
        self._of.pop(uid, None)
