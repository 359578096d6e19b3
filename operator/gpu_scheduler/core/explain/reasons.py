"""Why a group waits: the most specific reason that applies, and a sentence with numbers.

What can never be was said when the group was made. The rest is asked at the end of a cycle, about
what is free then, so the same question in the next cycle has the same answer unless something
changed. Groups that are alike are asked about once.
"""

from collections import Counter

from gpu_scheduler.core.explain import occupied_by
from gpu_scheduler.core.explain.affinity_reasons import AffinityExplainer
from gpu_scheduler.core.explain.gang_shortage import GangShortage
from gpu_scheduler.core.explain.group_words import APART, cost
from gpu_scheduler.core.explain.resource_words import resources
from gpu_scheduler.core.explain.shortage import shortage
from gpu_scheduler.core.explain.unsatisfiable import missing
from gpu_scheduler.core.fairness.budget import Budget, ModelBudget
from gpu_scheduler.core.fairness.flavors import Flavor, FlavorUsage
from gpu_scheduler.core.fit.feasibility import Feasibility
from gpu_scheduler.core.fit.placement import Placer, PodGroupAssignment, milli_of
from gpu_scheduler.core.model import quota, wording
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Reason, Reservation, ReservationReason, Verdict
from gpu_scheduler.core.model.request import Project, ProjectName
from gpu_scheduler.core.model.resources import NodeResources
from gpu_scheduler.core.model.running_pods import RunningPods
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.queue.pod_group import GroupRequest, Member, PodGroup
from gpu_scheduler.core.reservation.active import ActiveReservations

MOST_TOLD = 3  # jobs of a project that are told who holds what they wait for
_NEVER_BORROWS = "(weight 0: it never borrows)"
_NOT_NOW = "and cannot borrow now: pods inside their quota wait for the same nodes"


class Explainer:
    """Explains waits within one cycle, after its last placement."""

    def __init__(
        self,
        placer: Placer,
        flavors: FlavorUsage,
        feasibility: Feasibility,
        running_pods: RunningPods,
        active: ActiveReservations,
        cluster: Cluster,
    ) -> None:
        """``active``: room that is kept in the end; ``cluster``: before the cycle."""
        self._placer = placer
        self._snapshot = placer.snapshot
        self._flavors = flavors
        self._feasibility = feasibility
        self._running_pods = running_pods
        self._nominal = Budget(placer.snapshot, flavors, borrowing=False)
        self._borrowing = Budget(placer.snapshot, flavors, borrowing=True)
        reservations = active.reservations()
        self._reservations = {reservation.pod: reservation for reservation in reservations}
        self._missing = active.missing()
        self.kept = {reservation.job for reservation in reservations}
        """Jobs for which room is kept."""
        freed = (each for each in reservations if each.reason is ReservationReason.FREED)
        self.freed = {reservation.job for reservation in freed}
        """Of these: jobs for which pods are ending."""
        # Room on GPUs that are taken anyway keeps nobody out now: many need not be told of it.
        self._open: list[Reservation] = []
        self._taken: list[Reservation] = []
        for reservation in reservations:
            number = self._snapshot.number_of(reservation.node)
            is_open = occupied_by.is_open(reservation, cluster, number)
            (self._open if is_open else self._taken).append(reservation)
        self._verdicts: dict[tuple[GroupRequest, ProjectName], Verdict] = {}
        self._shortages: dict[tuple[object, ...], Verdict] = {}
        affinity = placer.affinity
        self._of_affinity = (
            AffinityExplainer(placer.snapshot, affinity) if affinity is not None else None
        )
        self._of_gangs = GangShortage(placer, self._of_affinity, self._of_pod)
        self._held: dict[tuple[object, ...], str] = {}

    def explain(self, group: PodGroup, position: int) -> Verdict:
        """Why this group did not start; ``position``: of its job within the project."""
        if self._reservations:
            reservations = [
                self._reservations[uid] for uid in group.uids if uid in self._reservations
            ]
            if reservations:
                return self._kept_for(group, reservations)
        key = group.needs, group.project.name
        verdict = self._verdicts.get(key) if group.complete else None
        if verdict is None:
            verdict = self._never(group) or self._incomplete(group) or self._for_now(group)
            if group.complete:
                self._verdicts[key] = verdict
        reason, message = verdict
        if position > MOST_TOLD:
            return verdict
        return reason, message + self._held_by(reason, group)

    def _kept_for(self, group: PodGroup, reservations: list[Reservation]) -> Verdict:
        """What a group for which room is kept waits for."""
        text, first = _kept(group, reservations), reservations[0]
        missing = self._missing.get(first.pod)
        if missing is None:
            return Reason.WAITING_FOR_GPU, text
        text += f"; GPUs are free there, others hold {_amounts(missing)} of what it needs"
        return Reason.WAITING_FOR_RESOURCES, text

    def _for_now(self, group: PodGroup) -> Verdict:
        found = self._waits_for_quota(group)
        if found is not None:
            return found
        if group.job.gang is None:
            return self._of_pod(group.members[0])
        return self._of_gangs.explain(group)

    def _held_by(self, reason: Reason, group: PodGroup) -> str:
        """Who holds what is waited for, and for whom it is kept then."""
        pod, pod_request = group.members[0]
        on_devices = reason in occupied_by.ON_DEVICES
        if not on_devices and reason is not Reason.WAITING_FOR_QUOTA:
            return ""
        key = (pod_request, pod.avoid) if on_devices else (group.project.name,)
        if key not in self._held:
            pods = occupied_by.holding(
                reason, group, self._snapshot, self._running_pods, occupied_by.MOST_NODES
            )
            held = occupied_by.held_by(reason, pods, self._snapshot.cluster)
            if held and not on_devices:
                whole = self._snapshot.allocated_milli(group.project.name)
                held += occupied_by.not_running(whole - sum(each.milli for each in pods))
            if on_devices:
                held = occupied_by.others(self._taken, pod_request, self._snapshot) + held
            self._held[key] = held
        return self._held[key]

    def _never(self, group: PodGroup) -> Verdict | None:
        if group.never is None:
            return None
        nowhere = self._nowhere(group)
        if group.never is Reason.UNSATISFIABLE:
            return group.never, nowhere
        project, needs = group.project, f"needs {cost(group)}; "
        most = wording.ceiling(project)
        if not self._feasibility.beyond_ceiling(group):
            models = sorted(self._feasibility.beyond_models(group))
            both = " or " if len(group.members) == 1 else " and "
            named = both.join(f"{_quota_of(project, model)} of {model}" for model in models)
            most = f"its quota {named} {_NEVER_BORROWS}"
        said = f"{needs}project {project.name} can never hold more than {most}"
        if nowhere:
            said = f"{said}; nor could any node hold it: {nowhere.removeprefix(needs)}"
        return group.never, said

    def _nowhere(self, group: PodGroup) -> str:
        """Why no node, or no nodes together, could ever hold a group; empty: they could."""
        for pod, pod_request in group.members:
            if not pod_request.could:
                role = f"role {pod.role} " if pod.role else ""
                return role + missing(pod_request.chooser, self._snapshot)
        domains = self._placer.domains
        refusal = domains.refusal(group) if group.job.gang is not None else ""
        return f"{refusal}; {APART}" if refusal and domains.kept_apart(group) else refusal

    def _incomplete(self, group: PodGroup) -> Verdict | None:
        gang = group.job.gang
        if gang is None or group.complete:
            return None
        exist = gang.size - gang.missing + len(group.members)
        return Reason.WAITING_FOR_GANG, f"{exist} of {gang.size} pods of the gang exist"

    def _waits_for_quota(self, group: PodGroup) -> Verdict | None:
        project, least = group.project, group.needs.least_milli
        if not least:
            return None
        held = gpu_from_milli(self._snapshot.allocated_milli(project.name))
        who = f"project {project.name} holds"
        needs = f"needs {cost(group)}"
        borrowing, ceiling = self._borrowing.room_milli(project), wording.ceiling(project)
        if least > borrowing:
            return Reason.WAITING_FOR_QUOTA, f"{needs}; {who} {held} of {ceiling}"
        model_budget = self._borrowing.model_budget(project)
        short = (
            model_budget.short_of(group.needs.counts.items()) if model_budget is not None else None
        )
        if short:
            models = self._of_models(project, short)
            return Reason.WAITING_FOR_QUOTA, f"{needs}; {who} {models} {_NEVER_BORROWS}"
        placement = self._placer.place(group, quota.UNBOUNDED)
        if placement is None:
            return None  # the quota is not what it lacks
        charge = milli_of(placement)
        if charge > borrowing:
            where = self._where(group, placement)
            return Reason.WAITING_FOR_QUOTA, f"needs {where}; {who} {held} of {ceiling}"
        if charge <= self._nominal.room_milli(project):
            return self._waits_for_models(group, placement)
        its = f"its quota {gpu_from_milli(project.quota_milli)}"
        return Reason.WAITING_FOR_QUOTA, f"{needs}; {who} {held} of {its} {_NOT_NOW}"

    def _where(self, group: PodGroup, placement: PodGroupAssignment) -> str:
        """What a group costs where it would fit."""
        charge = gpu_from_milli(milli_of(placement))
        if group.job.gang is not None:
            return f"{cost(group)}, {charge} where it would fit"
        name = self._snapshot.cluster.nodes[placement[0][1]].name
        return f"{wording.needs(group.members[0][1].pod_shape)}, {charge} on {name}"

    def _waits_for_models(self, group: PodGroup, placement: PodGroupAssignment) -> Verdict | None:
        """Where it is inside the quota of GPUs, and would fit if there were none of models."""
        project = group.project
        model_budget = self._nominal.model_budget(project)
        if model_budget is None or self._placer.place(
            group, quota.UNBOUNDED, model_budget=model_budget
        ):
            return None
        models = model_budget.short_of(group.needs.counts.items()) or self._beyond_budget(
            model_budget, placement
        )
        if not models:
            return None  # they would do, but not in the order in which members are tried
        why = _NOT_NOW if project.weight else _NEVER_BORROWS
        return (
            Reason.WAITING_FOR_QUOTA,
            f"needs {cost(group)}; project {project.name} holds"
            f" {self._of_models(project, models)} {why}",
        )

    def _beyond_budget(
        self, model_budget: ModelBudget, placement: PodGroupAssignment
    ) -> frozenset[Flavor]:
        costs: Counter[Flavor] = Counter()
        for _, _, choice in placement:
            costs.update(self._flavors.costs(choice.picks))
        return frozenset(
            flavor for flavor, cost in costs.items() if cost > model_budget.left_milli(flavor)
        )

    def _of_models(self, project: Project, models: frozenset[Flavor]) -> str:
        """What a project holds of models that its quota names."""
        return " and ".join(
            f"{gpu_from_milli(self._flavors.held_milli(project.name, model))} of its quota"
            f" {_quota_of(project, model)} of {model}"
            for model in sorted(models & project.quota_by_model.keys())
        )

    def _of_pod(self, member: Member) -> Verdict:
        """Why one pod finds no place."""
        pod, pod_request = member
        affinity = self._placer.affinity
        if self._of_affinity and affinity and affinity.forbidden(pod, pod_request) is not None:
            found = self._of_affinity.explain(pod, pod_request, self._placer.open_to(member))
            if found is not None:
                return found
        key = (pod_request, pod.avoid)
        if key not in self._shortages:
            reason, message = shortage(pod_request, pod.avoid, self._snapshot)
            kept = occupied_by.others(self._open, pod_request, self._snapshot)
            self._shortages[key] = reason, message + kept
        return self._shortages[key]


def _amounts(of: NodeResources) -> str:
    """'4 CPU and 1 rdma/hca'."""
    found = ((each, each.amount(of)) for each in resources(of))
    return " and ".join(f"{each.needed(amount)} {each.name}" for each, amount in found if amount)


def _kept(group: PodGroup, reservations: list[Reservation]) -> str:
    """What a group for which room is kept waits for."""
    needs = wording.needs(group.members[0][1].pod_shape)
    if group.job.gang is not None:
        needs = cost(group)
    nodes = wording.names(sorted({reservation.node for reservation in reservations}))
    if reservations[0].reason is ReservationReason.FREED:
        return f"needs {needs}; room on {nodes} is kept for it and pods there are ending"
    until = occupied_by.until(reservations[0].start)
    return f"needs {needs}; room on {nodes} is reserved for it{until}"


def _quota_of(project: Project, model: Flavor) -> str:
    return gpu_from_milli(project.quota_by_model.get(model, 0))
