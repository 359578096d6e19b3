"""Results out of logs, for images that cannot be changed: the log's tail, once, when a trial ends.

Whatever goes wrong for good is the trial's message; a node that does not answer is asked again a
few times. At most a megabyte of a tail is looked at. Needs the right to read logs, which the chart
gives only where it is asked for. Fed by ``trials``.
"""

import asyncio
from typing import NoReturn

from gpu_scheduler.api.log_regex import Find, LogRegexError, compiled
from gpu_scheduler.core.sweeps.outcome import TrialState
from gpu_scheduler.core.sweeps.results import Reading, read_log
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.sweeps.record import Sweep
from gpu_scheduler.runtime.sweeps.trials import Seen, Trials

TAIL_LINES = 200
TAIL_BYTES = 1_000_000
_WORKERS = 4
_TRIES = 5
_FIRST_DELAY_SECONDS = 0.5


class Logs:
    """Reads the logs of trials that have succeeded."""

    def __init__(self, client: Client, trials: Trials) -> None:
        """``trials`` is told what was read."""
        self._client, self._trials = client, trials
        self._todo: asyncio.Queue[tuple[Sweep, int, Seen]] = asyncio.Queue()
        self._queued: set[tuple[str, int]] = set()
        self._find: dict[tuple[str, str], Find] = {}  # by expression and metric

    def read(self, sweep: Sweep, trial: int, seen: Seen) -> None:
        """Read the log of this trial soon; asked again while that is under way, nothing happens."""
        if (sweep.uid, trial) not in self._queued:
            self._queued.add((sweep.uid, trial))
            self._todo.put_nowait((sweep, trial, seen))

    async def run(self) -> NoReturn:
        """Read for ever; ends with NotLeader when the fence closes."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_WORKERS):
                group.create_task(self._worker())
        raise AssertionError("workers do not end")

    async def _worker(self) -> NoReturn:
        while True:
            sweep, trial, seen = await self._todo.get()
            try:
                reading = await self._reading(sweep, seen)
                self._trials.read(sweep, trial, reading)
            except errors.NotLeader:
                raise
            except Exception:  # a mistake of ours about one trial must not stop all others
                unexpected("logs", f"{sweep.key}, trial {trial}")
                self._trials.read(sweep, trial, _missing("its log could not be read"))
            finally:
                self._queued.discard((sweep.uid, trial))

    async def _reading(self, sweep: Sweep, seen: Seen) -> Reading:
        try:
            find = self._finder(sweep)
        except LogRegexError as error:
            return _missing(f"spec.sweep.resultFrom.logRegex: {error}")
        delay = _FIRST_DELAY_SECONDS
        for attempt in range(1, _TRIES + 1):
            try:
                return read_log(await self._tail(sweep, seen), find, sweep.objective)
            except errors.NotLeader:
                raise
            except errors.NotFound:
                return _missing("its log is gone: the pod was deleted")
            except errors.Forbidden as error:
                return _missing(
                    f"the operator may not read logs (chart value sweeps.readLogs): {error.message}"
                )
            except errors.ApiError as error:
                if attempt == _TRIES:
                    return _missing(f"its log could not be read: {error}")
            await asyncio.sleep(delay)
            delay *= 2
        raise AssertionError("the last try answers")

    def _finder(self, sweep: Sweep) -> Find:
        said, objective = sweep.spec.result_from, sweep.objective
        if said is None or objective is None:
            raise LogRegexError("is missing, or the objective is")
        key = (said.log_regex, objective.metric)
        known = self._find.get(key)
        if known is None:
            if len(self._find) > 100:
                self._find.clear()
            known = self._find[key] = compiled(*key)
        return known

    async def _tail(self, sweep: Sweep, seen: Seen) -> str:
        raw = await self._client.request(
            "GET",
            pod_path(seen.pod.namespace, seen.pod.name, "log"),
            params={"container": sweep.container, "tailLines": TAIL_LINES},
        )
        return raw[-TAIL_BYTES:].decode(errors="replace")


def _missing(message: str) -> Reading:
    return Reading(TrialState.RESULT_MISSING, message=message)
