"""What makes Jobs follow GPUJobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from gpu_scheduler.runtime.common.build import CommonParts, Loop
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.claims import MissingClaims
from gpu_scheduler.runtime.jobs.job_writes import JobWrites
from gpu_scheduler.runtime.jobs.looking import Looking
from gpu_scheduler.runtime.jobs.missing import MissingPods
from gpu_scheduler.runtime.jobs.narrowing import Narrowing
from gpu_scheduler.runtime.jobs.reconcile import AllJobs, Jobs, Reconciler
from gpu_scheduler.runtime.jobs.refused.lifting import Lifting
from gpu_scheduler.runtime.jobs.refused.refusals import Refusals
from gpu_scheduler.runtime.jobs.removal import Removal
from gpu_scheduler.runtime.jobs.role_jobs import RoleJobs
from gpu_scheduler.runtime.jobs.services import Services

_WORKERS = 8  # GPUJobs worked on at once

MakeJobs = Callable[[Acceptance, Accepting, JobWrites], Jobs]
"""Makes what knows the Jobs of one kind of GPUJob."""


@dataclass(frozen=True, slots=True)
class JobParts:
    """The reconciler, and what looks at the Jobs that it makes."""

    common: CommonParts
    reconciler: Reconciler
    refusals: Refusals
    claims: MissingClaims
    looking: Looking
    missing: MissingPods
    narrowing: Narrowing
    services: Services
    lifting: Lifting

    @property
    def loops(self) -> Sequence[Loop]:
        """Those of GPUJobs and their Jobs."""
        work = partial(self.common.queue.work, self.reconciler.handle)
        others = (
            self.claims.run,
            self.claims.run_first,
            self.looking.run,
            self.missing.run,
            self.narrowing.run,
            self.services.run,
            self.lifting.run,
        )
        return (*(work,) * _WORKERS, *others)


def build(common: CommonParts, sweeps: MakeJobs) -> JobParts:
    """Make what looks after GPUJobs; ``sweeps``: makes the Jobs of those that are sweeps."""
    state, client, queue, settings = common.state, common.client, common.queue, common.settings
    clock, recheck_seconds = common.clock.monotonic, common.settings.recheck_seconds
    acceptance = Acceptance(
        client,
        common.installation,
        placement=settings.placement,
        namespace=settings.lease_namespace,
        clock=clock,
        class_of=state.device_classes.class_of,
    )
    claims = MissingClaims(state, client, lambda space: refusals.changed(space), clock=clock)
    accepting = Accepting(state, acceptance, claims, clock=clock)
    writes = JobWrites(state, client, queue.add_after, recheck_seconds=recheck_seconds, clock=clock)
    refusals = Refusals(clock, queue.add_after, first_seconds=recheck_seconds)
    reconciler = Reconciler(
        state,
        queue,
        AllJobs(
            roles=RoleJobs(state, client, acceptance, accepting, writes),
            sweeps=sweeps(acceptance, accepting, writes),
        ),
        accepting,
        refusals,
        Removal(state, client, queue.add_after, common.clock.now),
    )
    missing = MissingPods(state, acceptance, accepting, queue.ask, clock=clock)
    lifting = Lifting(
        state,
        acceptance,
        (refusals, missing.refusals),
        (missing.quota_changed, refusals.changed),
        clock=clock,
    )
    return JobParts(
        common,
        reconciler,
        refusals,
        claims,
        Looking(state, client, acceptance, clock=clock),
        missing,
        Narrowing(state, queue.ask, stays=writes.stays, clock=clock),
        Services(state, client, common.events),
        lifting,
    )
