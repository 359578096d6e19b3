"""The studies of adaptive searches: built, told and asked in a thread of their own.

Nobody else touches a study, so none needs a lock: what ended since the last question travels with
the next one, and a suggestion knows all that was known when it was asked for. A study that raises
or takes too long is given up; the next question begins another from what is stored. ``record``
tells it what has ended, ``start`` asks.
"""

import asyncio
from collections.abc import Callable, Sequence

from gpu_scheduler.api.search import Parameters
from gpu_scheduler.sweeps.core.outcome import Outcome
from gpu_scheduler.sweeps.search.tpe import TpeMissingError, TpeStudy, check_optuna
from gpu_scheduler.sweeps.thread import Thread

ASK_SECONDS = 30.0  # a study of the most trials begins within one


class Study:
    """One sweep's study, as the event loop sees it."""

    def __init__(self, begin: Callable[[], TpeStudy]) -> None:
        """``begin`` builds it, in the thread, at the first question."""
        self._begin = begin
        self._study: TpeStudy | None = None
        self._ended: list[Outcome] = []  # not told yet

    def tell(self, outcome: Outcome) -> None:
        """A trial has ended; this costs nothing."""
        self._ended.append(outcome)

    def untold(self) -> list[Outcome]:
        """What it has to be told with the next question, which is this one."""
        ended, self._ended = self._ended, []
        return ended

    def ask(self, ended: Sequence[Outcome], trial: int) -> Parameters:
        """Values for a trial; for the thread alone."""
        if self._study is None:
            self._study = self._begin()
        for outcome in ended:
            self._study.tell(outcome)
        return self._study.ask(trial)


class Studies:
    """Asks studies, one question at a time."""

    def __init__(self) -> None:
        """Nothing is imported before it is needed."""
        self._thread = Thread("tpe")
        self._missing: str | None = None

    async def missing(self) -> str:
        """Why no study can be asked here at all; empty if they can."""
        if self._missing is None:
            try:
                await asyncio.to_thread(check_optuna)  # the import takes a second
                self._missing = ""
            except TpeMissingError as error:
                self._missing = str(error)
        return self._missing

    async def ask(self, study: Study, trial: int) -> Parameters:
        """Values for a trial: those it was given before, else new ones.

        Raises:
            TimeoutError: it takes too long; whoever asks next need not wait for it.
            Exception: whatever the estimator says.
        """
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await self._thread(study.ask, study.untold(), trial)
        except TimeoutError:
            self._thread.close()
            self._thread = Thread("tpe")
            raise TimeoutError(f"no answer within {ASK_SECONDS:g} s") from None

    def close(self) -> None:
        """Ask nothing else."""
        self._thread.close()
