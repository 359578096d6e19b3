"""The parameters of a trial at the moment when its pod is placed: they travel in that one write.

Values of most searches are computed in the write itself. An adaptive one is asked before it, when
the planner has chosen a place: a suggestion then knows every result so far, and none grows old
beside a pod that waits for a GPU. Neither the planner nor the writes of other pods wait for it.
Whoever is tried again gets what it had. A search that has no values for a trial stops there, with a
message for its user, and stops nobody else.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NoReturn

from gpu_scheduler.api.search import Objective, Parameters
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.hparams import annotations
from gpu_scheduler.jobs.write import NotPlaceableError
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.sweeps.core.trials import NoSuchTrialError
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps
from gpu_scheduler.sweeps.search.studies import Studies, Study
from gpu_scheduler.sweeps.search.tpe import TpeMissingError, TpeStudy


class Start:
    """Gives trials their parameters."""

    def __init__(
        self,
        state: ClusterState,
        sweeps: Sweeps,
        studies: Studies,
        *,
        changed: Callable[[JobKey], None] = lambda key: None,
    ) -> None:
        """State and sweeps are only read, but for what adaptive searches give away.

        ``changed``: a search cannot go on, which its status is to say.
        """
        self._state = state
        self._sweeps = sweeps
        self._studies = studies
        self._changed = changed
        self._todo: asyncio.Queue[tuple[Sweep, int, Callable[[], None]]] = asyncio.Queue()

    def prepare(self, decision: Assignment, then: Callable[[], None]) -> bool:
        """Whether all is there for the write of this placement.

        If not, ``then`` is called when it is, or when it is certain that it never will be.
        """
        sweep = self._sweeps.of(decision.job)
        if sweep is None or not sweep.search.adaptive or not sweep.may_start:
            return True  # it is computed, or refused
        trial = self._trial(sweep, decision)
        if trial is None or sweep.parameters(trial) is not None:
            return True
        self._todo.put_nowait((sweep, trial, then))
        return False

    async def run(self) -> NoReturn:
        """Ask for ever, in the order in which places were chosen."""
        while True:
            sweep, trial, then = await self._todo.get()
            await self._ask(sweep, trial)
            then()

    def annotations(self, decision: Assignment) -> Mapping[str, str]:
        """What the write that places a pod sets besides; nothing for pods of no sweep.

        Raises:
            NotPlaceableError: it is no trial of its sweep, or the search has no values for it.
        """
        sweep = self._sweeps.of(decision.job)
        if sweep is None:
            return {}
        trial = self._trial(sweep, decision)
        if trial is None:
            raise NotPlaceableError(f"{decision.job}: a pod of no segment of this sweep")
        if not sweep.may_start:
            raise NotPlaceableError(f"{decision.job}: trial {trial} is not to start")
        try:
            parameters = sweep.parameters(trial)
        except NoSuchTrialError as error:
            raise NotPlaceableError(f"{decision.job}: {error}") from error
        if parameters is None:
            why = (
                sweep.adaptive.unsearchable
                or f"trial {trial}: an adaptive search needs an objective"
            )
            raise NotPlaceableError(f"{decision.job}: {why}")
        return annotations(trial, sweep.completions, parameters)

    def _trial(self, sweep: Sweep, decision: Assignment) -> int | None:
        pod = self._state.pods.known.get(decision.pod)
        found = self._sweeps.trial_of(pod) if pod is not None else None
        return found[1] if found is not None and found[0] is sweep else None

    async def _ask(self, sweep: Sweep, trial: int) -> None:
        """Remember new parameters of a trial, or why there are none."""
        if sweep.objective is None or sweep.parameters(trial) is not None:
            return  # or another pod of this trial was placed meanwhile
        try:
            try:
                parameters = await self._answer(sweep, sweep.objective, trial)
            except TimeoutError:  # the machine may have been busy: once more, with a new study
                sweep.adaptive.study = None
                parameters = await self._answer(sweep, sweep.objective, trial)
        except Exception as error:  # whatever the estimator says, all others are to go on
            sweep.adaptive.study = None
            field = "algorithm" if isinstance(error, TpeMissingError) else "parameters"
            sweep.adaptive.unsearchable = (
                f"spec.sweep.{field}: no values for trial {trial}: {error}"
            )
            unexpected("search", f"{sweep.key}: {sweep.adaptive.unsearchable}")
            self._changed(sweep.key)
        else:
            sweep.suggested(trial, parameters)

    async def _answer(self, sweep: Sweep, objective: Objective, trial: int) -> Parameters:
        if sweep.adaptive.study is None:
            sweep.adaptive.study = _study(sweep, objective)
        return await self._studies.ask(sweep.adaptive.study, trial)


def _study(sweep: Sweep, objective: Objective) -> Study:
    """A study that knows what is stored now; it is built where it is asked."""
    search, stored = sweep.search, list(sweep.table)
    return Study(lambda: TpeStudy(search.space, objective, search.seed, stored))
