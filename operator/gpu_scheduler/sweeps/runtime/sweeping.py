"""All that a leader does for sweeps, put together: the source of trials behind its port."""

import asyncio
from typing import NoReturn

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.common.events import InvolvedObject
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.job_writes import JobWrites
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.runtime.trial_source import Handle
from gpu_scheduler.state.jobs.job import GPUJobRecord
from gpu_scheduler.sweeps.runtime.loading import Loading
from gpu_scheduler.sweeps.runtime.log_search import SearchThread
from gpu_scheduler.sweeps.runtime.logs import Logs
from gpu_scheduler.sweeps.runtime.lookup import Lookup
from gpu_scheduler.sweeps.runtime.prerequisites import Prerequisites
from gpu_scheduler.sweeps.runtime.pruning import Pruning
from gpu_scheduler.sweeps.runtime.record import Sweeps
from gpu_scheduler.sweeps.runtime.reports import Reports
from gpu_scheduler.sweeps.runtime.results import Results
from gpu_scheduler.sweeps.runtime.salvage import as_it_ended, lost
from gpu_scheduler.sweeps.runtime.segment_jobs import SegmentJobs
from gpu_scheduler.sweeps.runtime.segments import Segments, is_over, running
from gpu_scheduler.sweeps.runtime.start import Start
from gpu_scheduler.sweeps.runtime.status import judged
from gpu_scheduler.sweeps.runtime.trials import Trials
from gpu_scheduler.sweeps.search.studies import Studies

_GATHER_SECONDS = 0.5  # ends of trials, before the Jobs of their sweep are looked at


class Sweeping:
    """The parts, and the tasks that they need."""

    def __init__(self, handle: Handle) -> None:
        """Nothing runs yet."""
        state, client, clock = handle.state, handle.client, handle.clock.monotonic
        self._state = state
        self._client = client
        self._events = handle.events
        self.sweeps = Sweeps(state)
        self._search = SearchThread()
        self._logs = Logs(client, self._search)
        self.trials = Trials(
            state,
            self.sweeps,
            changed=lambda key: handle.queue.add_after(key, _GATHER_SECONDS),
            read_log=self._logs.read,
            clock=clock,
        )
        self._studies = Studies()
        self._prerequisites = Prerequisites(self._studies, reads_logs=handle.settings.read_logs)
        self.start = Start(state, self.sweeps, self._studies, changed=handle.queue.ask)
        self.results = Results(
            client,
            self.sweeps,
            seconds=handle.settings.results_seconds,
            clock=clock,
            terminating=state.namespaces.terminating,
            refused=self._results_refused,
        )
        self._lookup = Lookup(client, self.trials, clock)
        self.pruning = Pruning(
            state, client, handle.evictor, handle.events, clock=clock, now=handle.clock.moment
        )
        self.reports = Reports(state, self.sweeps, self.pruning, handle.tokens, clock)

    @property
    def evicted(self) -> int:
        """Trials that were told to stop, did not, and were evicted."""
        return self.pruning.ended

    def may_start(self, key: JobKey) -> bool:
        """Whether pods of a GPUJob may be placed; true where it is no sweep."""
        return self.sweeps.may_start(key)

    def left(self, job: GPUJobRecord) -> int | None:
        """How many of its trials have not ended; None where it is no sweep."""
        return self.sweeps.left(job)

    def segments(self, acceptance: Acceptance, accepting: Accepting, writes: JobWrites) -> Segments:
        """What makes the Jobs of sweeps."""
        jobs = SegmentJobs(
            self._state,
            self._client,
            acceptance,
            writes,
            made=self.trials.job_changed,
        )
        loading = Loading(self._state, self.sweeps, self.trials, self.results)
        return Segments(self._state, jobs, accepting, loading, self._prerequisites)

    def _results_refused(self, key: JobKey, why: str) -> None:
        job = self._state.gpujobs.get(key)
        if job is not None:
            message = f"its results are kept in memory alone: no ConfigMap of them is taken: {why}"
            self._events.say(InvolvedObject.of_job(job), "Warning", "ResultsNotStored", message)

    def judged(self, job: GPUJobRecord) -> Judged | None:
        """A sweep as its status shows it; None where that is not known (any more)."""
        sweep = self.sweeps.of(job.key)
        if sweep is None or not sweep.loaded:
            return None
        found = judged(sweep, running(self._state, sweep), lost(sweep))
        if not is_over(job, sweep):
            return found
        return as_it_ended(job, sweep) or (found if found.ended is not None else None)

    async def run(self) -> NoReturn:
        """Work for ever; ends with NotLeader when the fence closes."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.start.run())
                group.create_task(self.results.run())
                group.create_task(self._logs.run())
                group.create_task(self._lookup.run())
                group.create_task(self.pruning.run())
        finally:
            self._search.close()
            self._studies.close()
        raise AssertionError("they do not end")
