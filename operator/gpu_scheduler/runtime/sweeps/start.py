"""The parameters of a trial at the moment when its pod is placed: they travel in that one write.

Values of most searches are computed; an adaptive one is asked here, once per trial: whoever is
tried again gets what it had. A search that has no values for a trial stops there, with a message
for its user, and stops nobody else. Called by the binder.
"""

from collections.abc import Callable, Mapping

from gpu_scheduler.adaptive.tpe import TpeMissingError, TpeStudy
from gpu_scheduler.core.model.decision import Place
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.sweeps.space import Parameters
from gpu_scheduler.core.sweeps.trials import NoSuchTrialError
from gpu_scheduler.jobs.hparams import annotations
from gpu_scheduler.jobs.write import NotPlaceableError
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.sweeps.record import Sweep, Sweeps
from gpu_scheduler.state.cluster_state import ClusterState


class Start:
    """Gives trials their parameters."""

    def __init__(
        self,
        state: ClusterState,
        sweeps: Sweeps,
        *,
        changed: Callable[[JobKey], None] = lambda key: None,
    ) -> None:
        """Both are only read, but for what adaptive searches give away.

        ``changed``: a search cannot go on, which its status is to say.
        """
        self._state, self._sweeps, self._changed = state, sweeps, changed

    def annotations(self, decision: Place) -> Mapping[str, str]:
        """What the write that places a pod sets besides; nothing for pods of no sweep.

        Raises:
            NotPlaceableError: it is no trial of its sweep, or the search has no values for it.
        """
        sweep, pod = self._sweeps.of(decision.job), self._state.pods.get(decision.pod)
        if sweep is None:
            return {}
        job = self._state.jobs.get(pod.job_uid) if pod is not None else None
        if pod is None or job is None or not sweep.know(job) or pod.index not in job.indexes:
            raise NotPlaceableError(f"{decision.job}: a pod of no segment of this sweep")
        trial = job.first_trial + pod.index
        if not sweep.may_start:
            raise NotPlaceableError(f"{decision.job}: trial {trial} is not to start")
        try:
            parameters = self._parameters(sweep, trial)
        except NoSuchTrialError as error:
            raise NotPlaceableError(f"{decision.job}: {error}") from error
        url = self._sweeps.report_url(sweep, trial)
        return annotations(trial, sweep.completions, parameters, url)

    def _parameters(self, sweep: Sweep, trial: int) -> Parameters:
        known = sweep.parameters(trial)
        if known is not None:
            return known
        if sweep.objective is None:
            raise NoSuchTrialError(f"trial {trial}: an adaptive search needs an objective")
        try:
            if sweep.study is None:
                sweep.study = TpeStudy(
                    sweep.search.space, sweep.objective, sweep.search.seed, sweep.table
                )
            parameters = sweep.study.ask(trial)
        except Exception as error:  # whatever the estimator says, all others are to go on
            field = "algorithm" if isinstance(error, TpeMissingError) else "parameters"
            sweep.unsearchable = f"spec.sweep.{field}: no values for trial {trial}: {error}"
            unexpected("search", f"{sweep.key}: {sweep.unsearchable}")
            self._changed(sweep.key)
            raise NoSuchTrialError(sweep.unsearchable) from error
        sweep.given(trial, parameters)
        return parameters
