"""How long to wait before trying again: exponential, capped, with jitter where it is asked for.

The jitter keeps many clients that lost one server from coming back at the same instant. Used
wherever something is tried again.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """What time and chance are to who waits and tries again.

    Attributes:
        clock: Monotonic seconds.
        sleep: Waits so many seconds.
        random: A number in [0, 1), for jitter.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    random: Callable[[], float] = random.random


REAL_TIME = Timing()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from ``first_seconds`` up to ``most_seconds``.

    Attributes:
        random: Returns a number in [0, 1); each delay is between half and all of its step. None:
            all of it.
    """

    first_seconds: float
    most_seconds: float
    random: Callable[[], float] | None = None

    def delay_seconds(self, attempt: int) -> float:
        """Delay after failed attempt number ``attempt`` (0 is the first)."""
        step = min(self.most_seconds, self.first_seconds * 2.0 ** min(attempt, 30))
        return step if self.random is None else step * (0.5 + 0.5 * self.random())
