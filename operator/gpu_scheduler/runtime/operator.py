"""The operator's parts, put together: everything that runs while this replica leads.

Order matters: lead, see the API server accept the new term, list everything (``first_look`` says in
which order, and why), and only then plan and write. Losing the Lease ends the process; the replica
that takes over rebuilds everything from the API server. Nothing here is kept anywhere else.
Which parts a folder has says its ``build``.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.binding import build as binding
from gpu_scheduler.runtime.binding.leader_term import LeaderTerm
from gpu_scheduler.runtime.common import build as common
from gpu_scheduler.runtime.common.build import Loop
from gpu_scheduler.runtime.common.observations import Observations
from gpu_scheduler.runtime.common.parts import Parts
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.eviction import build as eviction
from gpu_scheduler.runtime.informers import build as informers
from gpu_scheduler.runtime.informers.event_handlers import JobHandler, NamespaceHandler, PodHandler
from gpu_scheduler.runtime.jobs import build as jobs
from gpu_scheduler.runtime.jobs.missing import QuotaHandler
from gpu_scheduler.runtime.planning import Planning, PlanningRules, Times
from gpu_scheduler.runtime.reports import build as reports
from gpu_scheduler.runtime.status import build as status
from gpu_scheduler.runtime.status.device_events import DeviceEvents
from gpu_scheduler.runtime.status.protection import Watched
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.trial_source import Handle, TrialSource
from gpu_scheduler.runtime.usage import build as usage
from gpu_scheduler.state.jobs.job import GPUJobRecord

log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS = 10.0  # at all GPUJobs, before the first plan


class Operator:
    """Everything a leader runs. ``client`` must be fenced by the Lease."""

    def __init__(
        self,
        client: Client,
        settings: OperatorSettings,
        observations: Observations,
        holder: str,
        trial_source: Callable[[Handle], TrialSource],
        process_clock: Clock | None = None,
    ) -> None:
        """Build all parts; nothing runs yet.

        ``holder``: what the Lease calls this process; ``trial_source``: who runs sweeps.
        """
        shared = self.common = common.build(
            client, settings, process_clock or Clock(), lambda job: self.sweeping.left(job)
        )
        self.state, clock = shared.state, shared.clock.monotonic
        self.synced = asyncio.Event()
        self.eviction = eviction.build(shared)
        devices_changed = DeviceEvents(shared.state, shared.events).changed
        self.informers = informers.build(shared, devices_changed)
        self.reports = reports.build(shared)
        self.usage = usage.build(shared, observations)
        self.sweeping = trial_source(
            Handle(
                shared.state,
                client,
                shared.queue,
                shared.events,
                self.eviction.evictor,
                self.reports.tokens,
                settings,
                shared.clock,
            )
        )
        self.jobs = jobs.build(shared, self.sweeping.segments)
        self.binding = binding.build(
            shared,
            self.eviction.evictor,
            self.informers,
            LeaderTerm(client, settings.lease_namespace, holder, clock=clock),
            reports.urls(shared, self.sweeping.start),
            observations.bind_seconds,
        )
        self.planning = Planning(
            shared.state,
            self.binding.binder,
            self.eviction.preemption,
            shared.plan,
            self._rules(),
            Times(
                settings.cycle_seconds,
                clock,
                shared.clock.now,
                observe_seconds=observations.cycle_seconds,
            ),
        )
        self._watched = Watched(self.state.nodes.agents.reports, self.state.nodes.sick_devices)
        hurried = self.binding.binder.hurries
        self.status = status.build(
            shared,
            self.eviction.preemption,
            self._context,
            hurried,
            self.usage.minute.pod_advice,
            lambda: self.watches.namespaces.synced.is_set(),
        )
        self.watches = self._watches()

    def _rules(self) -> PlanningRules:
        settings = self.common.settings
        sweeping, doubts = self.sweeping, self.state.waiting.doubts

        def may_start(job: JobKey) -> bool:
            return sweeping.may_start(job) and not doubts.held_back(job)

        return PlanningRules(
            Packing(settings.packing),
            settings.consolidation,
            settings.reservation_after_seconds,
            settings.preemption_policy,
            may_start=may_start,
            make=self.common.queue.ask,
            look=self.jobs.looking.want,
            take_places=self.binding.arrivals.take_places,
            blind=self.common.client.watches.blind,
        )

    def _watches(self) -> informers.WatchParts:
        """Who is told of which object, in this order."""
        state, queue, binding, eviction = self.state, self.common.queue, self.binding, self.eviction
        followers = (
            binding.arrivals,
            self.sweeping.trials,
            binding.node_orders,
            binding.starting,
            eviction.overdue,
            eviction.losses,
            self.reports.checkpoints,
            eviction.preemption.costs,
            *self.usage.followers,
        )
        refusals = self.jobs.refusals
        may_be_allowed = self.jobs.missing.quota_changed, refusals.changed
        return informers.watch(
            self.common,
            self.informers.lists,
            JobHandler(state, queue.add, self.sweeping.trials, queue.ask, refusals.changed),
            PodHandler(state, binding.failed_placements, followers, look=queue.ask),
            NamespaceHandler(state, queue.add, *may_be_allowed),
            QuotaHandler(*may_be_allowed),
        )

    @property
    def loops(self) -> Sequence[Loop]:
        """All that runs once everything is known; the first plan comes after a look at all jobs."""
        return (
            *self.binding.loops,
            *self.jobs.loops,
            self._plan,
            *self.eviction.loops,
            *self.informers.loops,
            self.sweeping.run,
            self.status.run,
            *self.usage.loops,
            *self.common.loops,
            *self.watches.loops,
        )

    async def run(self) -> NoReturn:
        """Run until something fails or the lease is lost (NotLeader)."""
        try:
            await self._run()
        finally:
            gc.unfreeze()  # what ``first_look`` has frozen: else its garbage stays for ever
        raise AssertionError("the operator does not end by itself")

    async def _run(self) -> None:
        await self.binding.term.begin()
        self.common.clock.begin(self.common.client.heard)
        await self.watches.first_look.ours()
        async with Parts() as group:
            await self.watches.first_look.rest(group)
            log.info(
                "synced: %d pods, %d GPUJobs, %d projects",
                len(self.state.pods.known),
                len(self.state.gpujobs),
                len(self.state.projects.records),
            )
            self.state.beginnings.live = True
            self.synced.set()
            for loop in self.loops:
                group.create_task(loop())

    async def _plan(self) -> NoReturn:
        """Plan for ever, once the jobs that wait have been let into the queue in one piece.

        Else those that a worker had by chance looked at first would start first.
        """
        await self.common.queue.emptied(_FIRST_LOOK_SECONDS)
        await self.planning.run()

    def _context(self, job: GPUJobRecord) -> JobContext:
        """What the parts know of a job that no object says."""
        state, plan, missing = self.state, self.common.plan, self.jobs.missing
        preemption = self.eviction.preemption
        missing.see(job)
        return JobContext(
            wait=plan.waits.get(job.key),
            preempted=preemption.of(job.key),
            cost=preemption.costs.of(job),
            assumed=state.decisions.assumed,
            nominated=state.decisions.nominated.of(job.key),
            reservations=plan.reservations_of(job.key),
            sweep=self.sweeping.judged(job),
            quarantine=plan.quarantine.job(job.key),
            refused=missing.refused(job),
            doubt=state.waiting.doubts.of(job.key),
            evicted=self.eviction.losses.of(job.key),
            trouble=self.binding.starting.trouble,
            watched=self._watched,
            usage=partial(self.usage.of_job, job.uid),
            advice=partial(self.usage.minute.told.of, job.uid),
        )
