"""An event loop whose clock jumps to the next timer when nothing else can happen.

``asyncio.sleep`` and timeouts then cost nothing and every run is the same. There is no I/O here:
a test that waits for nothing at all fails at once instead of hanging. In what its handles say it is
uvloop, which the operator runs on: ``call_at`` answers with a bare ``Handle`` for what is due.
"""

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.loop: VirtualLoop | None = None

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("every task waits for something that cannot come")
        assert self.loop is not None
        self.loop.passed += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.passed = 1000.0
        selector = _Selector()
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.passed

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """As uvloop: what comes within half a millisecond has a handle that cannot say when."""
        if when <= self.passed:
            return self.call_soon(callback, *args, context=context)
        timer = super().call_at(when, callback, *args, context=context)
        return timer if round((when - self.passed) * 1000) else _Soon(timer, self)


class _Soon(asyncio.Handle):
    """All that uvloop's handle of what is due can do; here time passes until then all the same."""

    def __init__(self, timer: asyncio.TimerHandle, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(timer.cancel, (), loop)
        self._timer = timer

    def cancel(self) -> None:
        self._timer.cancel()
        super().cancel()


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test in virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def clock() -> float:
    """Virtual monotonic seconds, as components take it."""
    return asyncio.get_running_loop().time()


class Running:
    """Tasks that run beside a test and must not fail unnoticed."""

    def __init__(self, *works: Awaitable[object]) -> None:
        self._works = works
        self._tasks: list[asyncio.Future[object]] = []

    async def __aenter__(self) -> "Running":
        self._tasks = [asyncio.ensure_future(work) for work in self._works]
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result
