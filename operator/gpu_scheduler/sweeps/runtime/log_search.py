"""Searches in logs: in a thread of its own and with a budget, so none holds up the event loop.

RE2 lets go of the interpreter's lock while it searches a line, and no line takes long
(``api.log_regex``); between lines the thread looks at the CPU time that it has spent. So a thread
is enough: nothing has to be killed, and it runs at low priority. One log at a time. What it took is
told, so that a namespace whose logs are dear waits (``logs``).
"""

import logging
import os
import threading
import time
from collections.abc import Callable

from gpu_scheduler.api.log_regex import LogRegexError, compiled
from gpu_scheduler.api.search import Objective
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.core.results import Reading, read_log
from gpu_scheduler.sweeps.thread import Thread

log = logging.getLogger(__name__)

Searched = tuple[Reading, float]
"""What was found, and the CPU seconds that it took."""

CPU_SECONDS = 2.0  # for one log; the line at which they end is still finished
_NICENESS = 10


def search(
    tail: bytes,
    pattern: str,
    objective: Objective,
    clock: Callable[[], float] = time.thread_time,
) -> Reading:
    """The result in the end of a log; ``clock``: CPU seconds of this thread."""
    end = clock() + CPU_SECONDS
    try:
        find = compiled(pattern, objective.metric)
    except LogRegexError as error:
        sentence = f"spec.sweep.resultFrom.logRegex: {error}"
        return Reading(TrialState.RESULT_MISSING, message=sentence)
    return read_log(tail.decode(errors="replace"), find, objective, lambda: clock() >= end)


class SearchThread:
    """Runs ``search``, one after the other in the order in which they came."""

    def __init__(self) -> None:
        """The thread begins with the first search."""
        self._thread = Thread("logs", _give_way)

    async def __call__(self, tail: bytes, pattern: str, objective: Objective) -> Searched:
        """See ``search``."""
        return await self._thread(_timed, tail, pattern, objective)

    def close(self) -> None:
        """Begin no other search; the one that runs ends by its budget."""
        self._thread.close()


def _timed(tail: bytes, pattern: str, objective: Objective) -> Searched:
    began = time.thread_time()
    return search(tail, pattern, objective), time.thread_time() - began


def _give_way() -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)  # of the thread alone
    except OSError as error:
        log.info("logs are searched at the usual priority: %s", error)
