"""Why a gang waits, in the order of ``Reason``: what can never be, quota, then what is missing now.

"36 placeable" is found out by placing as many members as possible at the end of the cycle; that
is done for a bounded number of gangs, the others are told what is free. Called by ``reasons``.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np

from gpu_scheduler.core import quota, wording
from gpu_scheduler.core.decision import Hold, HoldKind, Reason
from gpu_scheduler.core.gangs.cycle import Gangs
from gpu_scheduler.core.gangs.placing import Placement, milli_of
from gpu_scheduler.core.gangs.request import GangRequest
from gpu_scheduler.core.holders import until
from gpu_scheduler.core.peer_reasons import PeerExplainer
from gpu_scheduler.core.pools import Allowance, Pool, Pools
from gpu_scheduler.core.request import Project, WaitingPod
from gpu_scheduler.core.shortage import Verdict
from gpu_scheduler.core.snapshot import Snapshot
from gpu_scheduler.core.units import gpu_from_milli
from gpu_scheduler.core.unsatisfiable import missing

MOST_TRIED = 32  # gangs that are placed as far as possible, for one sentence each

OfPod = Callable[[WaitingPod], Verdict]  # why a single pod finds no place


class GangExplainer:
    """Explains gangs within one cycle, after its last placement."""

    def __init__(self, snapshot: Snapshot, gangs: Gangs, pools: Pools) -> None:
        self._snapshot, self._gangs, self._pools = snapshot, gangs, pools
        self._within = Allowance(pools, above=False)
        self._tried = 0

    def explain(
        self, request: GangRequest, project: Project, holds: list[Hold], of_pod: OfPod
    ) -> Verdict:
        """Why this gang did not start.

        Args:
            request: what it asks for.
            project: its project.
            holds: those of its members.
            of_pod: asked about the first member that would not even start alone.
        """
        return (
            self._unsatisfiable(request)
            or self._exceeds_quota(request, project)
            or self._incomplete(request)
            or self._kept(request, holds)
            or self._waits_for_quota(request, project)
            or self._finds_no_place(request, project, of_pod)
        )

    def _unsatisfiable(self, request: GangRequest) -> Verdict | None:
        for pod, demand in request.members:
            if not demand.could:
                role = f"role {pod.role} " if pod.role else ""
                return Reason.UNSATISFIABLE, role + missing(demand.chooser, self._snapshot)
        refusal = self._gangs.refusal(request)
        return (Reason.UNSATISFIABLE, refusal) if refusal else None

    def _exceeds_quota(self, request: GangRequest, project: Project) -> Verdict | None:
        most = wording.ceiling(project)
        if request.least_milli <= quota.ceiling_milli(project):
            models = self._pools.never_enough(project, request.counts.items())
            if not models:
                return None
            named = (f"{_entry(project, model)} of {model}" for model in sorted(models))
            most = f"its quota {' and '.join(named)} (weight 0: it never borrows)"
        return (
            Reason.EXCEEDS_QUOTA,
            f"needs {_cost(request)}; project {project.name} can never hold more than {most}",
        )

    def _incomplete(self, request: GangRequest) -> Verdict | None:
        if request.complete:
            return None
        size = request.gang.size
        exist = size - request.gang.missing + len(request.members)
        return Reason.WAITING_FOR_GANG, f"{exist} of {size} pods of the gang exist"

    def _kept(self, request: GangRequest, holds: list[Hold]) -> Verdict | None:
        if not holds:
            return None
        nodes = wording.names(sorted({hold.node for hold in holds}))
        if holds[0].kind is HoldKind.FREED:
            what = f"room on {nodes} is kept for it and pods there are ending"
        else:
            what = f"room on {nodes} is reserved for it{until(holds[0].start)}"
        return Reason.WAITING_FOR_GPU, f"needs {_cost(request)}; {what}"

    def _waits_for_quota(self, request: GangRequest, project: Project) -> Verdict | None:
        if request.least_milli == 0:
            return None
        held = self._snapshot.allocated_milli(project.name)
        needs = f"needs {_cost(request)}; project {project.name} holds {gpu_from_milli(held)} of"
        if request.least_milli > quota.room_above_milli(project, held):
            return Reason.WAITING_FOR_QUOTA, f"{needs} {wording.ceiling(project)}"
        placement = self._gangs.placer.place(request, quota.UNBOUNDED)
        if placement is None:
            return None  # the quota is not what it lacks
        charge = milli_of(placement)
        if charge > quota.room_above_milli(project, held):
            return (
                Reason.WAITING_FOR_QUOTA,
                f"needs {_cost(request)}, {gpu_from_milli(charge)} where it would fit; project"
                f" {project.name} holds {gpu_from_milli(held)} of {wording.ceiling(project)}",
            )
        if charge <= quota.room_inside_milli(project, held):
            return self._waits_for_models(request, project, placement)
        return (
            Reason.WAITING_FOR_QUOTA,
            f"{needs} its quota {gpu_from_milli(project.quota_milli)} and cannot borrow now: pods"
            " inside their quota wait for the same nodes",
        )

    def _waits_for_models(
        self, request: GangRequest, project: Project, placement: Placement
    ) -> Verdict | None:
        """Where it is inside the quota of GPUs, and would fit if there were none of models."""
        purse = self._within.purse(project)
        if purse is None or self._gangs.placer.place(request, quota.UNBOUNDED, purse=purse):
            return None
        models = set(purse.short_of(request.counts.items()))
        if not models:
            costs: Counter[Pool] = Counter()
            for _, _, choice in placement:
                for _, device, milli, _ in choice.picks:
                    costs[self._pools.of_device(device)] += milli
            models = {pool for pool, cost in costs.items() if cost > purse.left_milli(pool)}
        if not models:
            return None  # they would do, but not in the order in which members are tried
        holds = (
            f"{gpu_from_milli(self._pools.held_milli(project.name, model))} of its quota"
            f" {_entry(project, model)} of {model}"
            for model in sorted(models)
        )
        why = "and cannot borrow now: pods inside their quota wait for the same nodes"
        if not project.weight:
            why = "(weight 0: it never borrows)"
        return (
            Reason.WAITING_FOR_QUOTA,
            f"needs {_cost(request)}; project {project.name} holds {' and '.join(holds)} {why}",
        )

    def _finds_no_place(self, request: GangRequest, project: Project, of_pod: OfPod) -> Verdict:
        alone = self._gangs.fits_alone
        lone = next((pod for pod, demand in request.members if not alone(pod, demand)), None)
        if lone is not None:
            reason, message = of_pod(lone)
            return reason, f"{_together(request)}: {message}"
        parts = [f"{self._free(request)} free"] if request.least_milli else []
        self._tried += 1
        if self._tried <= MOST_TRIED:
            most = self._gangs.placer.most(request)
            part = gpu_from_milli(milli_of(most)) if parts else wording.pods(len(most))
            parts.append(f"{part} placeable")
        if (ruled := self._by_rules(request)) is not None:
            return ruled[0], f"{_together(request)}; {ruled[1]}"
        text = f"{_together(request)}; {', '.join(parts) or 'not all fit'}"
        if request.topology is not None:
            text += f" in one {request.topology.key.rsplit('/', 1)[-1]}"
        return Reason.WAITING_FOR_GANG, text

    def _by_rules(self, request: GangRequest) -> Verdict | None:
        """What rules about other pods have to do with it, where they alone are in the way."""
        peers, placer = self._gangs.peers, self._gangs.placer
        if peers is None or all(peers.forbidden(*member) is None for member in request.members):
            return None
        if self._tried > MOST_TRIED or placer.place_but_for_rules(request) is None:
            return None
        most = placer.most(request)
        there = {member[0].uid for member, _, _ in most}
        left = [member for member in request.members if member[0].uid not in there]
        if not left:
            return None  # whom it wants to be near came only after it had been tried
        mark = peers.counts.mark()
        for (pod, _), node, _ in most:
            peers.add(pod, node)
        pod, demand = left[0]
        anywhere = np.zeros(len(self._snapshot.kind), dtype=np.bool_)
        found = PeerExplainer(self._snapshot, peers).explain(pod, demand, anywhere)
        peers.counts.rollback(mark)
        if found is None:
            return None
        return found[0], f"{len(most)} of {wording.pods(len(request.members))} fit; {found[1]}"

    def _free(self, request: GangRequest) -> str:
        """What is free on devices that members could use."""
        snapshot = self._snapshot
        cluster = snapshot.cluster
        devices = {
            cluster.first[n] + offset
            for demand in request.counts
            for n in demand.usable
            if snapshot.node_free_milli[n]
            for offset in demand.chooser.eligible(snapshot.kind[n])
        }
        milli = sum(cluster.free_milli[device] for device in devices)
        return f"{gpu_from_milli(milli)} {'is' if milli == 1000 else 'are'}"


def _entry(project: Project, model: Pool) -> str:
    return gpu_from_milli(project.quota_by_model.get(model, 0))


def _together(request: GangRequest) -> str:
    """'needs 40 GPUs in 10 pods at once', and the pods that want none beside them."""
    if not request.least_milli:
        return f"needs room for {wording.pods(len(request.members))} at once"
    without = sum(count for demand, count in request.counts.items() if not demand.least_milli)
    text = f"needs {_cost(request)} in {wording.pods(len(request.members) - without)} at once"
    return f"{text}, with {without} more without GPUs" if without else text


def _cost(request: GangRequest) -> str:
    least = "" if request.exact else "at least "
    return least + wording.gpus(request.least_milli)
