"""A work queue of keys: each at most once in the queue and never by two workers at a time.

A key added while a worker has it is handed out again afterwards. Failures come back with a growing
delay, which only news of the key cut short (``add``): who merely wants it looked at (``ask``,
``add_after``) does not go round it. Namespaces take turns, and of one only some are worked on at
once. Level-triggered: a key says that something changed, not what.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.failures import MOST_REFUSED_SECONDS, REFUSED_SECONDS
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.state.jobs.job import namespace_of

K = TypeVar("K", bound=str)

_LEAST_SECONDS = 0.001


class WorkQueue(Generic[K]):
    """Keys to be worked on. One event loop only."""

    def __init__(
        self,
        *,
        base_seconds: float = 0.2,
        max_seconds: float = 60.0,
        most_of_one: int | None = None,
    ) -> None:
        """An empty queue; a key that fails n times waits base * 2^n seconds, at most max.

        ``most_of_one``: of a namespace, worked on at once; None: as many as there are workers.
        """
        self._ready: Turns[str, K] = Turns(most_of_one)
        self._queued: set[K] = set()
        self._active: set[K] = set()
        self._again: dict[K, bool] = {}  # asked for while a worker has it; True: there are news
        self._later: dict[K, tuple[float, asyncio.Handle]] = {}  # when it is due, on the loop
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._backoff = Backoff(base_seconds, max_seconds)
        self._refused = Backoff(REFUSED_SECONDS, MOST_REFUSED_SECONDS)

    def __len__(self) -> int:
        """Keys that are ready."""
        return len(self._ready)

    def add(self, key: K) -> None:
        """Ask for the key to be worked on now: there are news of it."""
        if later := self._later.pop(key, None):
            later[1].cancel()
        if key in self._active:
            self._again[key] = True
        elif key not in self._queued:
            self._queued.add(key)
            self._idle.clear()
            self._ready.add(namespace_of(key), key)
            self._wake.set()

    def ask(self, key: K) -> None:
        """Ask for the key now without news of it: if it failed, its time is when it comes back."""
        if key in self._active:
            self._again.setdefault(key, False)
        elif not self._backs_off(key):
            self.add(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Ask for the key later, unless it is asked for sooner or failed and comes back anyway.

        A timer may come a little too early (the event loop rounds): who finds that it is not time
        yet asks for what is left, and would do so again and again without a least delay.
        """
        if self._backs_off(key):
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + (max(seconds, _LEAST_SECONDS) if seconds else 0.0)
        if later := self._later.get(key):
            if later[0] <= due:
                return
            later[1].cancel()
        # uvloop's handle of what is due at once does not know when: the time is kept beside it.
        self._later[key] = due, loop.call_at(due, self._due, key)

    def retry(self, key: K, *, refused: bool = False) -> float:
        """Ask for the key again after a delay that grows with its failures; returns the delay.

        ``refused``: the same would be refused again, so it is asked for ever more seldom.
        """
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        delay = (self._refused if refused else self._backoff).delay_seconds(count)
        if later := self._later.pop(key, None):
            later[1].cancel()
        due = asyncio.get_running_loop().time() + delay
        self._later[key] = due, asyncio.get_running_loop().call_at(due, self._due, key)
        return delay

    def succeeded(self, key: K) -> None:
        """Forget the key's failures."""
        self._failures.pop(key, None)

    async def work(self, handle: Callable[[K], Awaitable[None]]) -> None:
        """Work on keys for ever; ``handle`` deals with its own errors.

        What it raises even so, also where it deals with one, is noted and ends nothing: its key
        comes back with the next look at all. Others have their turn after each key: most are looked
        at without waiting for anything, and a leader that takes over has all of them in line.

        Raises:
            NotLeader: the fence has closed.
        """
        while True:
            while (taken := self._ready.take()) is None:
                self._wake.clear()
                await self._wake.wait()
            namespace, key = taken
            self._queued.discard(key)
            self._active.add(key)
            try:
                await handle(key)
            except errors.NotLeader:
                raise
            except Exception:
                unexpected("queue", key)
            finally:
                self._active.discard(key)
                self._ready.done(namespace)
                self._wake.set()
                news = self._again.pop(key, None)
                if news or (news is False and not self._backs_off(key)):
                    self.add(key)
                if not (self._ready or self._active):
                    self._idle.set()
            await asyncio.sleep(0)

    async def emptied(self, seconds: float) -> None:
        """Return once no key is ready or worked on, or after so many seconds."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            pass

    def _backs_off(self, key: K) -> bool:
        """Whether the key failed, and comes back in its own time."""
        return key in self._failures and key in self._later

    def _due(self, key: K) -> None:
        self._later.pop(key, None)
        if key in self._active:
            self.ask(key)
        else:
            self.add(key)
