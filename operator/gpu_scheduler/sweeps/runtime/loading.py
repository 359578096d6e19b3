"""A sweep with all that is stored of it: read once, when it is first looked at.

What ConfigMaps say comes first, then what pods and Jobs showed meanwhile, then what only the status
still knows.
"""

import logging

from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.sweeps.runtime.record import Sweep, Sweeps
from gpu_scheduler.sweeps.runtime.results import Results
from gpu_scheduler.sweeps.runtime.salvage import lost, salvage
from gpu_scheduler.sweeps.runtime.trials import Trials

log = logging.getLogger(__name__)


class Loading:
    """Completes what is remembered of sweeps."""

    def __init__(
        self, state: ClusterState, sweeps: Sweeps, trials: Trials, results: Results
    ) -> None:
        """``trials`` reads pods and Jobs, ``results`` the ConfigMaps."""
        self._state = state
        self._sweeps = sweeps
        self._trials = trials
        self._results = results

    async def loaded(self, job: GPUJobRecord) -> Sweep | None:
        """The sweep that a GPUJob is; None when it cannot be read.

        Raises:
            ApiError: the API server could not be asked; try again.
        """
        sweep = self._sweeps.of(job.key)
        if sweep is None:
            return None
        for own in job.own(self._state.workloads.jobs(job.key)):
            sweep.segments.know(own)
        if not sweep.loaded:
            await self._results.load(sweep)
            self._trials.loaded(sweep)
            self._results.keep(sweep, salvage(sweep, job, self._trials.reading(sweep)))
            if why := lost(sweep):
                log.warning("%s: %s", job.key, why)
        return sweep
