"""A thread with an event loop of its own, for what must be answered while the main loop plans.

A plan of many jobs holds the main loop for a tenth of a second, and all that waits for a turn of
it. What runs here touches nothing of the main loop's but by ``ask``.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]
_END_SECONDS = 2.0


class OnLoop(Protocol):
    """Has work done where the state is, and waits for it."""

    def __call__(self, work: Work[T], /) -> Awaitable[T]:
        """What it comes to."""


async def here(work: Work[T], /) -> T:
    """``OnLoop`` where the asker runs on the main loop itself."""
    return await work()


def asking(loop: asyncio.AbstractEventLoop) -> OnLoop:
    """``OnLoop`` for askers on other loops than this one."""

    async def ask(work: Work[T], /) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))

    return ask


class OwnThread:
    """Runs from ``start`` to ``end``; its loop is of the kind of the one that starts it."""

    def __init__(self, name: str) -> None:
        """``name``: of the thread."""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """From where the main loop runs."""
        loop = self._loop = type(asyncio.get_running_loop())()
        # A daemon: the program ends without it where ``end`` was not reached.
        self._thread = threading.Thread(
            target=self._run, args=(loop,), name=self._name, daemon=True
        )
        self._thread.start()

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    async def run(self, work: Work[T]) -> T:
        """Have it done there, and wait for it."""
        assert self._loop is not None
        return await asking(self._loop)(work)

    async def end(self) -> None:
        """Its loop turns no more; what is still on it is dropped."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, _END_SECONDS)
