"""Results out of logs, for images that cannot be changed: the log's tail, once, when a trial ends.

Whatever goes wrong for good is the trial's message, and so is a log that is too dear to search: it
is decided, and no later leader reads it again. A node that does not answer is asked again a few
times. Namespaces take turns, and one whose logs take long waits nine times as long before its next:
whatever its patterns, it has a fifth of a core at most. Needs the right to read logs, which the
chart gives only where it is asked for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from gpu_scheduler.api.search import Objective
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.limits.turns import Turns
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.core.results import Reading
from gpu_scheduler.sweeps.runtime.record import Sweep
from gpu_scheduler.sweeps.runtime.trials import Tell, TrialPod

TAIL_LINES = 200
TAIL_BYTES = 1_000_000  # of these lines that are searched
MOST_BYTES = 16 << 20  # of these lines that are fetched
_WORKERS = 8
_WORKERS_OF_ONE = 2  # of a namespace: whose logs are dear waits for itself
_REST = 9  # times as long as a search took
_TRIES = 5
_FIRST_DELAY_SECONDS = 0.5
_FETCH_SECONDS = 20.0

Search = Callable[[bytes, str, Objective], Awaitable[tuple[Reading, float]]]
"""The result in the end of a log, by an expression, and the CPU seconds that this took."""
_Task = tuple[Sweep, int, TrialPod, Tell]


class Logs:
    """Reads the logs of trials that have succeeded."""

    def __init__(self, client: Client, search: Search) -> None:
        """``search`` must not hold up the event loop."""
        self._client = client
        self._search = search
        self._todo: Turns[str, _Task] = Turns(_WORKERS_OF_ONE)
        self._queued: set[tuple[str, int]] = set()
        self._free = asyncio.Semaphore(_WORKERS)
        self._news = asyncio.Event()

    def read(self, sweep: Sweep, trial: int, seen: TrialPod, tell: Tell) -> None:
        """Read the log of this trial soon, and tell; asked again meanwhile, nothing happens."""
        if (sweep.uid, trial) not in self._queued:
            self._queued.add((sweep.uid, trial))
            self._todo.add(sweep.namespace, (sweep, trial, seen, tell))
            self._news.set()

    async def run(self) -> NoReturn:
        """Read for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._free.acquire()
                group.create_task(self._one(*await self._next()))

    async def _next(self) -> tuple[str, _Task]:
        while (found := self._todo.take()) is None:
            self._news.clear()
            await self._news.wait()
        return found

    async def _one(self, namespace: str, task: _Task) -> None:
        sweep, trial, seen, tell = task
        took = 0.0
        try:
            reading, took = await self._read(sweep, trial, seen)
            tell(reading)
        except errors.NotLeader:
            raise
        except Exception:  # a mistake of ours about one trial must not stop all others
            unexpected("logs", f"{sweep.key}, trial {trial}")
        finally:
            self._queued.discard((sweep.uid, trial))
            self._free.release()
            asyncio.get_running_loop().call_later(_REST * took, self._rested, namespace)

    def _rested(self, namespace: str) -> None:
        self._todo.done(namespace)
        self._news.set()

    async def _read(self, sweep: Sweep, trial: int, seen: TrialPod) -> tuple[Reading, float]:
        try:
            return await self._reading(sweep, seen)
        except errors.NotLeader:
            raise
        except Exception:
            unexpected("logs", f"{sweep.key}, trial {trial}")
            return _missing("its log could not be read")

    async def _reading(self, sweep: Sweep, seen: TrialPod) -> tuple[Reading, float]:
        said, objective = sweep.spec.result_from, sweep.objective
        if said is None or objective is None:
            return _missing("spec.sweep.resultFrom or spec.sweep.objective is missing")
        delay = _FIRST_DELAY_SECONDS
        for attempt in range(1, _TRIES + 1):
            try:
                tail = await self._tail(sweep, seen)
            except errors.NotLeader:
                raise
            except errors.NotFound:
                return _missing("its log is gone: the pod was deleted")
            except errors.Forbidden as error:
                return _missing(
                    f"the operator may not read logs (chart value sweeps.readLogs): {error.message}"
                )
            except (errors.ApiError, TimeoutError) as error:
                if attempt == _TRIES:
                    why = str(error) or f"it did not come within {_FETCH_SECONDS:g} s"
                    return _missing(f"its log could not be read: {why}")
            else:
                if tail is None:
                    return _missing(
                        f"the last {TAIL_LINES} lines of its log have more than "
                        f"{MOST_BYTES >> 20} MiB: print less, or shorter lines"
                    )
                return await self._search(tail, said.log_regex, objective)
            await asyncio.sleep(delay)
            delay *= 2
        raise AssertionError("the last try answers")

    async def _tail(self, sweep: Sweep, seen: TrialPod) -> bytes | None:
        """The end of the log; None when there is more than is fetched. Never all of it at once."""
        tail, size = bytearray(), 0
        async with (
            asyncio.timeout(_FETCH_SECONDS),
            self._client.watch(
                pod_path(seen.pod.namespace, seen.pod.name, "log"),
                inactivity_seconds=_FETCH_SECONDS,
                container=sweep.container,
                tailLines=TAIL_LINES,
                limitBytes=MOST_BYTES,
            ) as chunks,
        ):
            async for chunk in chunks:
                size += len(chunk)
                tail += chunk
                del tail[:-TAIL_BYTES]
        return bytes(tail) if size < MOST_BYTES else None


def _missing(message: str) -> tuple[Reading, float]:
    return Reading(TrialState.RESULT_MISSING, message=message), 0.0
