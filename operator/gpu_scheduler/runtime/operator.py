"""The operator's parts, put together: everything that runs while this replica leads.

Order matters: lead, see the API server accept the new term, list everything (``first_look`` says in
which order, and why), and only then plan and write. Losing the Lease ends the process; the replica
that takes over rebuilds everything from the API server. Nothing here is kept anywhere else.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from gpu_scheduler.api.gpujob import Isolation
from gpu_scheduler.api.names import COMPONENT_AGENT, LABEL_COMPONENT, LABEL_JOB
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.jobs.cap import CapImage
from gpu_scheduler.jobs.place import Pin
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.jobs.share_form import lacks
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.objects import Job, Lease, Namespace, Node, Pod, ResourceQuota
from gpu_scheduler.kube.paths import JOBS, NAMESPACES, NODES, PODS, RESOURCE_QUOTAS, lease
from gpu_scheduler.kube.reflector import Reflector
from gpu_scheduler.runtime.binding.arrivals import Arrivals
from gpu_scheduler.runtime.binding.binder import Binder, Writing
from gpu_scheduler.runtime.binding.failed_placements import FailedPlacements, Patience
from gpu_scheduler.runtime.binding.gang_guard import GangGuard
from gpu_scheduler.runtime.binding.gang_writes import GangWrites
from gpu_scheduler.runtime.binding.leader_term import LeaderTerm
from gpu_scheduler.runtime.binding.node_orders import NodeOrders, NodeVersions
from gpu_scheduler.runtime.binding.placeholder_pods import holder_pods
from gpu_scheduler.runtime.binding.starting import Starting
from gpu_scheduler.runtime.common.events import WRITERS, Events
from gpu_scheduler.runtime.common.last_plan import LastPlan
from gpu_scheduler.runtime.common.observations import Observations
from gpu_scheduler.runtime.common.parts import Parts
from gpu_scheduler.runtime.common.quarantine import Quarantine, warn
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.eviction.evictor import Evictor
from gpu_scheduler.runtime.eviction.left_behind import LeftBehind
from gpu_scheduler.runtime.eviction.losses import Losses
from gpu_scheduler.runtime.eviction.overcap import OverCapEvictions
from gpu_scheduler.runtime.eviction.overdue import Overdue
from gpu_scheduler.runtime.eviction.preemption import Preemptor
from gpu_scheduler.runtime.informers.changed_nodes import ChangedNodes
from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.informers.event_handlers import (
    JobHandler,
    NamespaceHandler,
    NodeHandler,
    PodHandler,
)
from gpu_scheduler.runtime.informers.first_look import FirstLook
from gpu_scheduler.runtime.informers.heartbeats import Heartbeats
from gpu_scheduler.runtime.informers.our_lists import OPTIONAL, PATHS, OurLists
from gpu_scheduler.runtime.jobs.acceptance import Acceptance
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.runtime.jobs.job_writes import JobWrites
from gpu_scheduler.runtime.jobs.looking import Looking
from gpu_scheduler.runtime.jobs.missing import MissingPods, QuotaHandler
from gpu_scheduler.runtime.jobs.narrowing import Narrowing
from gpu_scheduler.runtime.jobs.reconcile import Reconciler
from gpu_scheduler.runtime.jobs.refusals import Refusals
from gpu_scheduler.runtime.jobs.removal import Removal
from gpu_scheduler.runtime.jobs.role_jobs import RoleJobs
from gpu_scheduler.runtime.jobs.services import Services
from gpu_scheduler.runtime.planning import Planning, PlanningRules, Times
from gpu_scheduler.runtime.reports.checkpoints import Checkpoints
from gpu_scheduler.runtime.reports.report_tokens import ReportTokens
from gpu_scheduler.runtime.reports.report_urls import ReportUrls
from gpu_scheduler.runtime.reports.token_reviews import TokenReviews
from gpu_scheduler.runtime.status.class_status import ClassStatuses
from gpu_scheduler.runtime.status.device_events import DeviceEvents
from gpu_scheduler.runtime.status.job_statuses import JobStatuses
from gpu_scheduler.runtime.status.pod_conditions import PodConditions
from gpu_scheduler.runtime.status.pod_warnings import PodWarnings
from gpu_scheduler.runtime.status.project_status import ProjectStatuses
from gpu_scheduler.runtime.status.scheduled_events import ScheduledEvents
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.status.status_writer import StatusWriter
from gpu_scheduler.runtime.trial_source import Handle, TrialSource
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord

log = logging.getLogger(__name__)

_WORKERS, _WORKERS_OF_ONE = 8, 6  # GPUJobs worked on at once, and of one namespace
_FIRST_LOOK_SECONDS = 10.0  # at all GPUJobs, before the first plan
_LEASE_SILENCE_SECONDS = 30.0  # a dead watch must not make agents look dead


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
        self.clock = process_clock or Clock()
        clock, now = self.clock.monotonic, self.clock.now
        moment, stamp = self.clock.moment, self.clock.stamp
        self.term = LeaderTerm(client, settings.lease_namespace, holder, clock=clock)
        self.settings = settings
        self.client = client
        self.state = ClusterState(
            settings.lease_namespace, consolidation=settings.consolidation, now=now
        )
        client.watches.need([*PATHS.values(), NODES, JOBS, PODS], [OPTIONAL], self.state.replan)
        self.synced = asyncio.Event()
        self.queue: WorkQueue[JobKey] = WorkQueue(most_of_one=_WORKERS_OF_ONE)
        self.events = Events(
            client,
            instance=settings.identity,
            terminating=self.state.terminating,
            clock=clock,
            now=stamp,
        )
        self.losses = Losses(self.state)
        self.evictor = Evictor(
            self.state,
            client,
            self.events,
            self.losses,
            pause_seconds=settings.eviction_pause_seconds,
            blind=client.watches.blind,
        )
        self.plan = LastPlan(self.state, Quarantine(self.state, warn(self.events), clock=clock))
        self.gangs = GangGuard(
            self.state,
            self.evictor,
            GangWrites(),
            self.plan,
            patience_seconds=settings.stuck_seconds,
            clock=clock,
        )
        self.failed_placements = FailedPlacements(
            self.state,
            self.evictor,
            self.gangs,
            Patience(settings.stuck_seconds, settings.avoid_seconds),
            clock=clock,
            now=now,
        )
        self.starting = Starting(self.state, client, self.evictor, self.gangs, clock=clock)
        self.preemption = Preemptor(self.state, self.evictor, self.events, clock=clock, now=now)
        self.overcap = OverCapEvictions(self.state, self.evictor, clock=clock)
        self.overdue = Overdue(self.state, client, now=now)
        self.left_behind = LeftBehind(self.state, clock=clock)
        self.token_reviews = TokenReviews(client, clock=clock)
        tokens = ReportTokens(self.token_reviews, clock=clock, now=now)
        self.sweeping = trial_source(
            Handle(
                self.state,
                client,
                self.queue,
                self.events,
                self.evictor,
                tokens,
                settings,
                self.clock,
            )
        )
        report_url = settings.report_url if settings.report_port else ""
        self.scheduled_events = ScheduledEvents(
            self.events, lambda: self.binder.idle, on=settings.scheduled_events, now=stamp
        )
        how = Writing(
            settings.write_concurrency,
            Pin(settings.pin),
            more=ReportUrls(self.state, self.sweeping.start, report_url),
            observe_seconds=observations.bind_seconds,
            placed=self.scheduled_events.placed,
            recheck_seconds=settings.recheck_seconds,
        )
        self.binder = Binder(self.state, client, self.term, self.gangs, how, clock=clock)
        self.arrivals = Arrivals(self.state, self.binder)
        self.planning = Planning(
            self.state,
            self.binder,
            self.preemption,
            self.plan,
            PlanningRules(
                Packing(settings.packing),
                settings.consolidation,
                settings.reservation_after_seconds,
                settings.preemption_policy,
                may_start=lambda job: (
                    self.sweeping.may_start(job) and not self.state.waiting.doubts.held_back(job)
                ),
                make=self.queue.ask,
                look=lambda jobs: self.looking.want(jobs),
                take_places=self.arrivals.take_places,
                blind=client.watches.blind,
            ),
            Times(settings.cycle_seconds, clock, now, observe_seconds=observations.cycle_seconds),
        )
        changed_nodes = ChangedNodes()
        self.heartbeats = Heartbeats(self.state, changed_nodes, clock=clock)
        self.custom_resources = CustomResources(
            self.state,
            changed=self.queue.add,
            look=self.queue.ask,
            devices_changed=DeviceEvents(self.state, self.events).changed,
            node_changed=changed_nodes.add,
            read_again=lambda: self.lists.ask(),
        )
        self.services = Services(self.state, client, self.events)
        self.checkpoints = Checkpoints(self.state, client, tokens, clock=clock, now=moment)
        self.holders = holder_pods(self.state, client, settings, clock)
        self.node_orders = NodeOrders(
            self.state,
            client,
            settings.lease_namespace,
            changed_nodes,
            lambda node: NodeVersions(
                self.custom_resources.node_version(node), *self.heartbeats.lease(node)
            ),
            clock=clock,
        )
        cap_image = (
            CapImage(settings.cap_image, settings.cap_pull_policy) if settings.cap_image else None
        )
        given = Installation(cap_image, Isolation(settings.isolation))
        self.state.lacks = lambda pod, asked: lacks(pod, asked, given.image_for(asked.isolation))
        acceptance = Acceptance(
            client,
            placement=settings.placement,
            runtime_class=settings.runtime_class,
            namespace=settings.lease_namespace,
            isolation=settings.isolation,
            cap_image=cap_image,
            clock=clock,
        )
        self.looking = Looking(self.state, client, acceptance, clock=clock)
        accepting = Accepting(self.state, acceptance, clock=clock)
        writes = JobWrites(
            self.state,
            client,
            self.queue.add_after,
            recheck_seconds=settings.recheck_seconds,
            clock=clock,
        )
        refusals = Refusals(clock, self.queue.add_after, first_seconds=settings.recheck_seconds)
        self.reconciler = Reconciler(
            self.state,
            self.queue,
            RoleJobs(self.state, client, acceptance, accepting, writes),
            self.sweeping.segments(acceptance, accepting, writes),
            accepting,
            refusals,
            Removal(self.state, client, self.queue.add_after, now),
        )
        self.missing = MissingPods(self.state, acceptance, accepting, self.queue.ask, clock=clock)
        self.narrowing = Narrowing(self.state, self.queue.ask, stays=writes.stays, clock=clock)
        self.status = StatusWriter(
            client,
            (
                JobStatuses(
                    self.state,
                    self.events,
                    self.preemption,
                    self._known,
                    numbers=self.plan.numbers,
                    finished=self.queue.ask,
                    now=stamp,
                ),
                PodConditions(
                    self.state, self.events, lambda: self.plan.waits, clock=clock, now=stamp
                ),
                PodWarnings(self.state, self.events, now=stamp),
                ProjectStatuses(self.state, self.plan, now=stamp),
                ClassStatuses(self.state, now=stamp),
            ),
            seconds=settings.status_seconds,
            clock=clock,
            hurried=lambda: bool(self.state.assumed),
        )
        self.reflectors: list[Reflector[Pod] | Reflector[Node] | Reflector[Job]] = [
            Reflector(client, NODES, Node, NodeHandler(self.state)),
            Reflector(
                client,
                JOBS,
                Job,
                JobHandler(self.state, self.queue.add, self.sweeping.trials, self.queue.ask),
                params={"labelSelector": LABEL_JOB},
            ),
            Reflector(
                client,
                PODS,
                Pod,
                PodHandler(
                    self.state,
                    self.failed_placements,
                    (
                        self.arrivals,
                        self.sweeping.trials,
                        self.node_orders,
                        self.starting,
                        self.overdue,
                        self.losses,
                        self.checkpoints,
                        self.preemption.costs,
                    ),
                    look=self.queue.ask,
                ),
            ),
        ]
        self.lists = OurLists(client, self.custom_resources)
        self.first_look = FirstLook(self.lists, self.reflectors, settings.resync_seconds)
        # Not waited for: until it is known, the API server refuses what cannot be made any more.
        may_be_allowed = self.missing.quota_changed, refusals.changed
        namespaces = NamespaceHandler(self.state, self.queue.add, *may_be_allowed)
        self.namespaces = Reflector(client, NAMESPACES, Namespace, namespaces)
        # Not waited for: without it, refused jobs are tried again later.
        self.quotas = Reflector(
            client, RESOURCE_QUOTAS, ResourceQuota, QuotaHandler(*may_be_allowed)
        )
        # Not waited for: until a Lease has been seen for its term, its agent counts as alive.
        self.leases = Reflector(
            client,
            lease(settings.lease_namespace),
            Lease,
            self.heartbeats,
            params={"labelSelector": f"{LABEL_COMPONENT}={COMPONENT_AGENT}"},
            inactivity_seconds=_LEASE_SILENCE_SECONDS,
        )

    async def run(self) -> NoReturn:
        """Run until something fails or the lease is lost (NotLeader)."""
        try:
            await self._run()
        finally:
            gc.unfreeze()  # what ``first_look`` has frozen: else its garbage stays for ever
        raise AssertionError("the operator does not end by itself")

    async def _run(self) -> None:
        await self.term.begin()
        self.clock.begin(self.client.heard)
        await self.first_look.ours()
        async with Parts() as group:
            await self.first_look.rest(group)
            log.info(
                "synced: %d pods, %d GPUJobs, %d projects",
                len(self.state.pods),
                len(self.state.gpujobs),
                len(self.state.projects.records),
            )
            self.state.beginnings.live = True
            self.synced.set()
            group.create_task(self.term.run())
            for _ in range(_WORKERS):
                group.create_task(self.queue.work(self.reconciler.handle))
            run: Callable[[], Coroutine[Any, Any, None]]
            for run in (self.binder.run, self._plan, self.evictor.run, self.failed_placements.run):
                group.create_task(run())
            for run in (self.gangs.run, self.leases.run, self.namespaces.run, self.quotas.run):
                group.create_task(run())
            for run in (self.starting.run, self.looking.run, self.missing.run, self.narrowing.run):
                group.create_task(run())
            for run in (self.heartbeats.run, self.node_orders.run, self.overcap.run):
                group.create_task(run())
            for run in (self.overdue.run, self.left_behind.run, self.holders.run):
                group.create_task(run())
            for run in (self.sweeping.run, self.services.run, self.status.run):
                group.create_task(run())
            for _ in range(WRITERS):
                group.create_task(self.events.run())
            group.create_task(self.scheduled_events.run())
            group.create_task(self.first_look.run())

    async def _plan(self) -> NoReturn:
        """Plan for ever, once the jobs that wait have been let into the queue in one piece.

        Else those that a worker had by chance looked at first would start first.
        """
        await self.queue.emptied(_FIRST_LOOK_SECONDS)
        await self.planning.run()

    def _known(self, job: GPUJobRecord) -> JobContext:
        """What the parts know of a job that no object says."""
        self.missing.see(job)
        return JobContext(
            wait=self.plan.waits.get(job.key),
            preempted=self.preemption.of(job.key),
            cost=self.preemption.costs.of(job),
            assumed=self.state.assumed,
            nominated=self.state.nominated.of(job.key),
            sweep=self.sweeping.judged(job),
            quarantine=self.plan.quarantine.job(job.key),
            refused=self.missing.refused(job),
            doubt=self.state.waiting.doubts.of(job.key),
            evicted=self.losses.of(job.key),
            trouble=self.starting.trouble,
        )
