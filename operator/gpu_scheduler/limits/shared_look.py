"""A look that takes a while, made when somebody asks and shared by all who ask.

It is at most so old, and made once however many ask meanwhile. What nobody asks for costs nothing.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SharedLook(Generic[T]):
    """``await look()`` is what was seen."""

    def __init__(
        self,
        look: Callable[[], Coroutine[Any, Any, T]],
        seconds: float | Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        """Nobody has asked yet.

        Args:
            look: looks.
            seconds: after its beginning a look is too old for whoever asks then.
            clock: monotonic seconds.
        """
        self._look = look
        self._seconds = seconds if callable(seconds) else lambda: seconds
        self._clock = clock
        self._made: asyncio.Task[T] | None = None
        self._at = 0.0

    async def __call__(self) -> T:
        """What was seen; what a look raised is raised for all who waited for it, and for no other.

        One who goes away does not take it from the others.
        """
        made = self._made
        if made is None or (made.done() and (self._old() or _failed(made))):
            self._at = self._clock()
            made = self._made = asyncio.create_task(self._look())
        return await asyncio.shield(made)

    def _old(self) -> bool:
        return self._clock() - self._at >= self._seconds()


def _failed(made: "asyncio.Task[T]") -> bool:
    return made.cancelled() or made.exception() is not None
