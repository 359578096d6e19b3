"""One thread for work that takes too long for the event loop: one piece after the other.

Its queue is in order of arrival. Work that takes Python's own time still shares the interpreter's
lock with the loop, which gets it back within milliseconds. Work that hangs keeps no process from
ending.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Thread:
    """Runs functions, one at a time."""

    def __init__(self, name: str, begin: Callable[[], None] = lambda: None) -> None:
        """The thread begins with the first piece of work, and calls ``begin`` before it."""
        self._name = name
        self._begin = begin
        self._todo = queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]()
        self._begun = self._closed = False

    async def __call__(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` answers or raises."""
        if not self._begun:
            self._begun = True
            # A daemon: the interpreter's end would wait for any other thread.
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        answer = Future[T]()
        self._todo.put((answer, partial(work, *args, **kwargs)))
        return await asyncio.wrap_future(answer)

    def close(self) -> None:
        """Begin nothing else; what runs now is not waited for."""
        self._closed = True
        self._todo.put(None)

    def _run(self) -> None:
        self._begin()
        while (item := self._todo.get()) is not None:
            answer, work = item
            if self._closed:
                answer.cancel()
            elif answer.set_running_or_notify_cancel():
                try:
                    answer.set_result(work())
                except BaseException as error:
                    answer.set_exception(error)
