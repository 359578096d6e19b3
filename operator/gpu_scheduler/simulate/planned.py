"""One plan on a cluster's objects, with what it was made from: what ``why`` and ``fit`` look at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment, Plan
from gpu_scheduler.core.model.request import JobKey, PodUID, Project, ProjectName, WaitingJob
from gpu_scheduler.core.model.running_pods import RunningPods
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import NOBODY, PlanInput
from gpu_scheduler.core.queue.pod_group import PodGroup
from gpu_scheduler.simulate.cluster_objects import Objects
from gpu_scheduler.simulate.operator_rules import DEFAULT, OPERATOR_NAMESPACE, OperatorRules
from gpu_scheduler.simulate.simulated_cluster import SimulatedCluster, scene_of
from gpu_scheduler.state.jobs.job import epoch_seconds


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan.

    Attributes:
        simulated: the state that it was made from; it stays as it was.
        session: with what is free once the plan is carried out, and the queues.
        plan: the decisions.
        projects: that were planned with.
        jobs: that waited.
        rules: by which it was made.
        now: RFC 3339, of the plan.
    """

    simulated: SimulatedCluster
    session: PlannerCache
    plan: Plan
    projects: dict[ProjectName, Project]
    jobs: dict[JobKey, WaitingJob]
    rules: OperatorRules
    now: str

    @property
    def running_pods(self) -> RunningPods:
        """Who holds what."""
        return self.simulated.state.running_pods

    @property
    def before(self) -> Cluster:
        """The cluster before the plan is carried out."""
        return self.simulated.state.snapshot()

    def key_of(self, kind: str, namespace: str, name: str, pod_uid: str) -> JobKey | None:
        """The job or group that an object is known as; None where the plan knows none."""
        state = self.simulated.state
        if kind == "gpujob":
            key = JobKey(f"{namespace}/{name}")
            return key if key in state.gpujobs else None
        pod = state.pods.known.get(PodUID(pod_uid))
        return state.workloads.key_of(pod) if pod is not None else None

    def group_of(self, key: JobKey, pod_uid: str = "") -> PodGroup | None:
        """What of a job waits: with this pod, or else the first; None: nothing does."""
        groups = self.session.queues.groups_of(key)
        first = next(groups, None)
        if first is None or not pod_uid or pod_uid in first.uids:
            return first
        return next((group for group in groups if pod_uid in group.uids), first)

    def place_of(self, key: JobKey, pod_uid: str = "") -> Assignment | None:
        """Where the plan starts a pod of a job."""
        mine = [place for place in self.plan.assignments if place.job == key]
        return next((place for place in mine if place.pod == pod_uid), mine[0] if mine else None)

    def name_of(self, key: JobKey) -> str:
        """What a job is called."""
        return self.simulated.state.groups.name_of(key)


def plan_once(objects: Objects, now: str, rules: OperatorRules = DEFAULT) -> Planned:
    """Plan on a cluster's objects, at a time in RFC 3339.

    Raises:
        SimulationError: an object is not what the API server would have stored.
    """
    moves = rules.consolidation
    simulated = scene_of(objects, OPERATOR_NAMESPACE, now, consolidation=moves)
    return plan_scene(simulated, now, rules)


def plan_scene(
    simulated: SimulatedCluster, now: str, rules: OperatorRules = DEFAULT, *, evictions: bool = True
) -> Planned:
    """Plan on a state, which stays as it was; without ``evictions`` nobody gives way."""
    return _plan(simulated, simulated.state.waiting_jobs(), now, rules, evictions=evictions)


def without_room_for(planned: Planned, key: JobKey) -> Planned:
    """The same as if nothing were kept for a job: what is free then is free for it."""
    if all(reservation.job != key for reservation in planned.plan.reservations):
        return planned
    now = epoch_seconds(planned.now)  # room is reserved only for who has waited for a while
    jobs = [_new(job, now) if job.key == key else job for job in planned.jobs.values()]
    found = planned
    for evictions in (True, False):
        found = _plan(planned.simulated, jobs, planned.now, planned.rules, evictions=evictions)
        if all(reservation.job != key for reservation in found.plan.reservations):
            break
    return found if found.group_of(key) is not None else planned


def _new(job: WaitingJob, now: float) -> WaitingJob:
    return replace(job, pods=tuple(replace(pod, since=now) for pod in job.pods))


def _plan(
    simulated: SimulatedCluster,
    jobs: Sequence[WaitingJob],
    now: str,
    rules: OperatorRules,
    *,
    evictions: bool,
) -> Planned:
    state, session = simulated.state, PlannerCache()
    projects = state.planner_projects()
    given = PlanInput(
        state.snapshot(),
        projects,
        jobs,
        state.running_pods if evictions else NOBODY,
        now=epoch_seconds(now),
        reserve_after_seconds=rules.reserve_after_seconds,
        consolidate=rules.consolidation and evictions,
        preemption_policy=rules.preemption_policy,
        packing=rules.packing,
    )
    found = plan(given, session)
    waiting = {job.key: job for job in jobs}
    return Planned(simulated, session, found, projects, waiting, rules, now)
