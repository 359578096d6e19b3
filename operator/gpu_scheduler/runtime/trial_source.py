"""The port to whoever runs the trials of sweeps: all that the operator asks of it.

To planner, binder and evictor a trial is a pod like any other. Which parameters it gets, what came
of it and whether more may start is known behind this port alone; the entry point hands in what is
there (``sweeps.runtime.sweeping``), and nothing in or below ``runtime`` names it.
"""

from dataclasses import dataclass
from typing import NoReturn, Protocol

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.binding.binder import More
from gpu_scheduler.runtime.common.events import Events
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.eviction.evictor import Evictor
from gpu_scheduler.runtime.informers.event_handlers import JobFollower, PodFollower
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.job_writes import JobWrites
from gpu_scheduler.runtime.jobs.reconcile import Jobs
from gpu_scheduler.runtime.reports.report_tokens import ReportJudge, ReportTokens
from gpu_scheduler.runtime.status.judged import Judged
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord


@dataclass(frozen=True, slots=True)
class Handle:
    """What a source of trials may use of the leader, as kube-scheduler's framework.Handle is.

    ``queue``: of GPUJobs whose Jobs are to be looked at; ``tokens``: whose report it is.
    """

    state: ClusterState
    client: Client
    queue: WorkQueue[JobKey]
    events: Events
    evictor: Evictor
    tokens: ReportTokens
    settings: OperatorSettings
    clock: Clock


class TrialFollower(PodFollower, JobFollower, Protocol):
    """What hears of pods and Jobs of trials."""


class TrialSource(Protocol):
    """Runs the trials of all GPUJobs that are sweeps; says nothing of other GPUJobs."""

    @property
    def trials(self) -> TrialFollower:
        """Is told of all pods and Jobs."""
        ...

    @property
    def start(self) -> More:
        """The parameters of a trial, for the write that places its pod."""
        ...

    @property
    def reports(self) -> ReportJudge:
        """Answers what running trials report."""
        ...

    @property
    def evicted(self) -> int:
        """Trials that were told to stop, did not, and were evicted."""
        ...

    def may_start(self, key: JobKey) -> bool:
        """Whether pods of a GPUJob may be placed; true where it is no sweep."""
        ...

    def left(self, job: GPUJobRecord) -> int | None:
        """How many of its trials have not ended; None where it is no sweep."""
        ...

    def segments(self, acceptance: Acceptance, accepting: Accepting, writes: JobWrites) -> Jobs:
        """What makes the Jobs of sweeps."""
        ...

    def judged(self, job: GPUJobRecord) -> Judged | None:
        """A sweep as its status shows it; None where that is not known (any more)."""
        ...

    async def run(self) -> NoReturn:
        """Work for ever; ends with NotLeader when the fence closes."""
        ...
