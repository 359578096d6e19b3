"""The clock of one process: time that only goes forward, told as seconds of the epoch.

Whatever somebody does to the wall clock of this machine, ages and deadlines that are measured by
``now`` stay what they were: the wall clock is read once, at ``begin``, and compared from then on.
Where it is not what the API server's clock is, that counts: most of the times that are read are the
API server's. ``look`` notices a step, so that it can be said.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NoReturn

from gpu_scheduler.kube.times import timestamp

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
# NTP corrects a clock by at most half a millisecond in a second; a machine that has much to do may
# come back from one reading of a clock to the next some milliseconds later.
LEAST_STEP_SECONDS = 1.0
# A Date header is in whole seconds, and took its time to come.
_AGREES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What another machine said that the time is, and when we heard it, monotonic seconds."""

    date: str = ""
    at: float = 0.0


NOBODY = Heard()


class Clock:
    """Monotonic time with an anchor in wall-clock time."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin now; ``wall``: epoch seconds."""
        self.monotonic = monotonic
        self._wall = wall
        self.steps = {"forward": 0, "back": 0}
        """Steps of the wall clock that were noticed."""
        self.begin()

    def begin(self, heard: Heard = NOBODY) -> None:
        """Anchor it anew: in our own wall clock, or in the other's where that is another time."""
        self._ahead = self._zero = self._wall() - self.monotonic()
        theirs = _epoch(heard)
        if theirs is not None and abs(self._zero - theirs) > _AGREES_SECONDS:
            self._zero = theirs
            log.warning(
                "the wall clock of this machine is %+.0f s from the API server's, which counts",
                self._ahead - theirs,
            )

    def now(self) -> float:
        """Epoch seconds; a later call never answers less."""
        return self._zero + self.monotonic()

    def moment(self) -> datetime:
        """The same as a time with a zone."""
        return datetime.fromtimestamp(self.now(), UTC)

    def stamp(self) -> str:
        """The same as objects carry it."""
        return timestamp(self.moment())

    def ahead_seconds(self) -> float:
        """By how much the wall clock of this machine is ahead of ``now``."""
        return self._wall() - self.now()

    def look(self) -> float:
        """By how much the wall clock was set forward since the last look, in seconds; back: < 0.

        A step is logged. A machine that slept looks the same: its monotonic clock stood still.
        """
        ahead = self._wall() - self.monotonic()
        step, self._ahead = ahead - self._ahead, ahead
        if abs(step) < LEAST_STEP_SECONDS:
            return 0.0
        way = "forward" if step > 0 else "back"
        self.steps[way] += 1
        log.warning(
            "the wall clock of this machine was set %s by %.0f s%s: nothing is decided by it; it is"
            " now %+.0f s from the time that is counted",
            way,
            abs(step),
            ", or the machine slept" if step > 0 else "",
            self.ahead_seconds(),
        )
        return step

    async def run(self) -> NoReturn:
        """Look for ever."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.look()


def _epoch(heard: Heard) -> float | None:
    """The epoch seconds of the other's clock at our monotonic zero."""
    try:
        said = parsedate_to_datetime(heard.date)
    except (TypeError, ValueError):
        return None
    return said.replace(tzinfo=said.tzinfo or UTC).timestamp() + 0.5 - heard.at
