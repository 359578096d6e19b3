"""Why a job waits: the most specific reason that applies, and a sentence with numbers.

Asked at the end of a cycle, about what is free then, so the same question in the next cycle has
the same answer unless something changed. Costs at most one pass over the nodes per shape and
cycle; everything is remembered. Called by ``plan`` once per waiting job.
"""

from collections.abc import Sequence

from gpu_scheduler.core import holders, quota, wording
from gpu_scheduler.core.decision import Hold, Reason
from gpu_scheduler.core.demand import Demand, Demands
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.reasons import GangExplainer
from gpu_scheduler.core.gangs.request import Signature
from gpu_scheduler.core.occupants import Occupants
from gpu_scheduler.core.peer_reasons import Flags, PeerExplainer
from gpu_scheduler.core.pools import Allowance, Pool, Pools
from gpu_scheduler.core.request import Project, ProjectName, WaitingJob, WaitingPod
from gpu_scheduler.core.rounds import Tables
from gpu_scheduler.core.shortage import Verdict, shortage
from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.units import gpu_from_milli
from gpu_scheduler.core.unsatisfiable import missing

MOST_TOLD = 3  # jobs of a project that are told who holds what they wait for


class Explainer:
    """Explains waits within one cycle, after its last placement."""

    def __init__(
        self,
        snapshot: Snapshot,
        demands: Demands,
        tables: Tables,
        occupants: Occupants,
        holds: Sequence[Hold],
        gangs: Gangs,
        pools: Pools,
    ) -> None:
        self._gangs, self._of_gang = gangs, GangExplainer(snapshot, gangs, pools)
        self._gang_verdicts: dict[tuple[Signature, ProjectName], Verdict] = {}
        self._pools = pools
        self._within = Allowance(pools, above=False)
        self._beyond = Allowance(pools, above=True)
        self._snapshot = snapshot
        self._demands = demands
        self._tables = tables
        self._occupants = occupants
        self._holds = {hold.pod: hold for hold in holds}
        self._verdicts: dict[tuple[object, ...], Verdict] = {}
        self._shortages: dict[tuple[object, ...], Verdict] = {}
        peers = gangs.peers
        self._of_peers = PeerExplainer(snapshot, peers) if peers is not None else None
        self._missing: dict[Demand, str] = {}
        self._held: dict[tuple[object, ...], str] = {}

    def explain_gang(self, job: WaitingJob, project: Project, position: int) -> Verdict:
        """Why this gang did not start; ``position``: of its job within the project."""
        request = self._gangs.of(job)
        uids = {pod.uid for pod in job.pods}
        holds = [hold for uid, hold in self._holds.items() if uid in uids] if self._holds else []
        key = request.signature, project.name
        verdict = self._gang_verdicts.get(key) if not holds and request.complete else None
        if verdict is None:
            verdict = self._of_gang.explain(request, project, holds, self._of_pod)
            if not holds and request.complete:
                self._gang_verdicts[key] = verdict
        reason, message = verdict
        if position > MOST_TOLD or holds:
            return verdict
        pod, demand = request.members[0]
        return reason, message + self._held_by(reason, demand, pod.avoid, project.name)

    def explain(self, pod: WaitingPod, project: Project, position: int) -> Verdict:
        """Why this pod did not start; ``position``: of its job within the project."""
        demand = self._demands.of(pod.shape)
        hold = self._holds.get(pod.uid)
        if hold is not None:
            return Reason.WAITING_FOR_GPU, holders.kept_for(hold, demand)
        forbidden = self._gangs.forbidden(pod, demand)
        key = (demand, pod.avoid, project.name, None if forbidden is None else id(pod.peers))
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = (
                self._unsatisfiable(demand)
                or self._exceeds_quota(demand, project)
                or self._waits_for_quota(demand, pod.avoid, project, forbidden)
                or self._finds_no_place(pod, demand)
            )
        reason, message = verdict
        if position > MOST_TOLD:
            return verdict
        return reason, message + self._held_by(reason, demand, pod.avoid, project.name)

    def _held_by(
        self, reason: Reason, demand: Demand, avoid: frozenset[str], project: ProjectName
    ) -> str:
        """Who holds what is waited for."""
        if reason is Reason.WAITING_FOR_QUOTA:
            key: tuple[object, ...] = (project,)
            if key not in self._held:
                self._held[key] = holders.of_project(project, self._occupants)
        elif reason in (Reason.WAITING_FOR_GPU, Reason.FRAGMENTED, Reason.WAITING_FOR_GANG):
            key = (demand, avoid)
            if key not in self._held:
                self._held[key] = holders.of_devices(demand, avoid, self._snapshot, self._occupants)
        else:
            return ""
        return self._held[key]

    def _unsatisfiable(self, demand: Demand) -> Verdict | None:
        if demand.could:
            return None
        if demand not in self._missing:
            self._missing[demand] = missing(demand.chooser, self._snapshot)
        return Reason.UNSATISFIABLE, self._missing[demand]

    def _exceeds_quota(self, demand: Demand, project: Project) -> Verdict | None:
        if demand.least_milli <= quota.ceiling_milli(project):
            if demand.least_milli <= self._pools.ceiling_milli(project, demand):
                return None
            named = " or ".join(_entry(project, pool) for pool in sorted(self._pools.of(demand)))
            return (
                Reason.EXCEEDS_QUOTA,
                f"needs {_cost(demand)}; project {project.name} can never hold more than"
                f" its quota {named} (weight 0: it never borrows)",
            )
        return (
            Reason.EXCEEDS_QUOTA,
            f"needs {_cost(demand)}; project {project.name} can never hold more than"
            f" {wording.ceiling(project)}",
        )

    def _waits_for_quota(
        self,
        demand: Demand,
        avoid: frozenset[str],
        project: Project,
        forbidden: Flags | None,
    ) -> Verdict | None:
        if demand.least_milli == 0:
            return None
        held = self._snapshot.allocated_milli(project.name)
        above, inside = (
            f(project, held) for f in (quota.room_above_milli, quota.room_inside_milli)
        )
        if demand.least_milli > above:
            return (
                Reason.WAITING_FOR_QUOTA,
                f"needs {_cost(demand)}; project {project.name} holds {gpu_from_milli(held)} of"
                f" {wording.ceiling(project)}",
            )
        if demand.least_milli > self._beyond.milli(project, demand):
            holds = self._holds_of_models(project, demand)
            return (
                Reason.WAITING_FOR_QUOTA,
                f"needs {_cost(demand)}; project {project.name} holds {holds}"
                " (weight 0: it never borrows)",
            )
        found = self._tables.open(demand).best(avoid, forbidden=forbidden)
        if found is None:
            return None  # the quota is not what it lacks
        node, choice = found
        charge = sum(pick[2] for pick in choice.picks)
        if not demand.exact and charge > above:
            name = self._snapshot.cluster.nodes[node].name
            return (
                Reason.WAITING_FOR_QUOTA,
                f"needs {wording.needs(demand.shape)}, {gpu_from_milli(charge)} on {name}; project"
                f" {project.name} holds {gpu_from_milli(held)} of {wording.ceiling(project)}",
            )
        if charge <= inside:
            may = self._within.judge(project)
            if may is None or may(choice):
                return None
            why = " and cannot borrow now: pods inside their quota wait for the same nodes"
            if not project.weight:
                why = " (weight 0: it never borrows)"
            holds = self._holds_of_models(project, demand, choice)
            return (
                Reason.WAITING_FOR_QUOTA,
                f"needs {_cost(demand)}; project {project.name} holds {holds}{why}",
            )
        return (
            Reason.WAITING_FOR_QUOTA,
            f"needs {_cost(demand)}; project {project.name} holds {gpu_from_milli(held)} of its"
            f" quota {gpu_from_milli(project.quota_milli)} and cannot borrow now: pods inside"
            " their quota wait for the same nodes",
        )

    def _of_pod(self, pod: WaitingPod) -> Verdict:
        return self._finds_no_place(pod, self._demands.of(pod.shape))

    def _holds_of_models(
        self, project: Project, demand: Demand, choice: Choice | None = None
    ) -> str:
        """What a project holds of the models that could serve, or of those of some devices."""
        pools = self._pools.of(demand)
        if choice is not None:
            pools = frozenset(self._pools.of_device(pick[1]) for pick in choice.picks)
        return " and ".join(
            f"{gpu_from_milli(self._pools.held_milli(project.name, pool))} of its quota"
            f" {_entry(project, pool)}"
            for pool in sorted(pools & project.quota_by_model.keys())
        )

    def _finds_no_place(self, pod: WaitingPod, demand: Demand) -> Verdict:
        if self._of_peers is not None and self._gangs.forbidden(pod, demand) is not None:
            open_now = self._tables.would_hold(demand, pod.avoid)
            found = self._of_peers.explain(pod, demand, open_now)
            if found is not None:
                return found
        key = (demand, pod.avoid)
        if key not in self._shortages:
            reason, message = shortage(demand, pod.avoid, self._snapshot)
            kept = holders.others(self._holds.values(), demand, self._snapshot)
            self._shortages[key] = reason, message + kept
        return self._shortages[key]


def _entry(project: Project, pool: Pool) -> str:
    return f"{gpu_from_milli(project.quota_by_model.get(pool, 0))} of {pool}"


def _cost(demand: Demand) -> str:
    text = wording.needs(demand.shape)
    return text if demand.exact else f"{text}, at least {gpu_from_milli(demand.least_milli)} of one"
