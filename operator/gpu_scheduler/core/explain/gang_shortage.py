"""Why a gang finds no place although its project may have it.

"36 placeable" is found out by placing as many members as possible at the end of the cycle; that
is done for a bounded number of gangs, the others are told what is free.
"""

from collections.abc import Callable

import numpy as np

from gpu_scheduler.core.explain.affinity_reasons import AffinityExplainer
from gpu_scheduler.core.explain.group_words import APART, together
from gpu_scheduler.core.explain.shortage import untrusted
from gpu_scheduler.core.fit.placement import Placer, milli_of
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.decision import Reason, Verdict
from gpu_scheduler.core.model.units import gpu_from_milli
from gpu_scheduler.core.queue.pod_group import Member, PodGroup

MOST_TRIED = 32  # gangs that are placed as far as possible, for one sentence each

OfPod = Callable[[Member], Verdict]  # why a single pod finds no place


class GangShortage:
    """Explains gangs within one cycle, after its last placement."""

    def __init__(
        self, placer: Placer, of_affinity: AffinityExplainer | None, of_pod: OfPod
    ) -> None:
        self._placer = placer
        self._snapshot = placer.snapshot
        self._of_affinity = of_affinity
        self._of_pod = of_pod
        self._tried = 0

    def explain(self, group: PodGroup) -> Verdict:
        """What is in its way: a member that would not even start alone, or all of it."""
        alone = self._placer.fits_alone
        lone = next((member for member in group.members if not alone(member)), None)
        if lone is not None:
            reason, message = self._of_pod(lone)
            return reason, f"{together(group)}: {message}"
        least = group.needs.least_milli
        parts = [f"{self._free(group)} free"] if least else []
        self._tried += 1
        if self._tried <= MOST_TRIED:
            most = self._placer.most(group)
            part = gpu_from_milli(milli_of(most)) if least else wording.pods(len(most))
            parts.append(f"{part} placeable")
        if (ruled := self._by_rules(group)) is not None:
            return ruled[0], f"{together(group)}; {ruled[1]}"
        text = f"{together(group)}; {', '.join(parts) or 'not all fit'}"
        topology = group.needs.topology
        if topology is not None:
            text += f" in one {topology.key.rsplit('/', 1)[-1]}"
        if self._kept_apart(group):
            text += f"; {APART}"
        nodes = self._snapshot.cluster.nodes
        for pod_request in group.needs.counts:
            if closed := untrusted(pod_request, [nodes[n] for n in pod_request.could]):
                text += f"; {closed[0]}"
                break
        return Reason.WAITING_FOR_GANG, text

    def _by_rules(self, group: PodGroup) -> Verdict | None:
        """What rules about other pods have to do with it, where they alone are in the way."""
        affinity, of_affinity = self._placer.affinity, self._of_affinity
        if affinity is None or of_affinity is None or self._tried > MOST_TRIED:
            return None
        if all(affinity.forbidden(*member) is None for member in group.members):
            return None
        if self._placer.place_but_for_rules(group) is None:
            return None
        most = self._placer.most(group)
        there = {member[0].uid for member, _, _ in most}
        left = [member for member in group.members if member[0].uid not in there]
        if not left:
            return None  # whom it wants to be near came only after it had been tried
        mark = affinity.counts.mark()
        for (pod, _), node, _ in most:
            affinity.add(pod, node)
        anywhere = np.zeros(len(self._snapshot.node_shape), dtype=np.bool_)
        found = of_affinity.explain(*left[0], anywhere)
        affinity.counts.rollback(mark)
        if found is None:
            return None
        return found[0], f"{len(most)} of {wording.pods(len(group.members))} fit; {found[1]}"

    def _kept_apart(self, group: PodGroup) -> bool:
        """Whether it would start now if its members might share a GPU."""
        if not group.needs.gang.distinct or self._tried > MOST_TRIED:
            return False
        return self._placer.place_sharing(group) is not None

    def _free(self, group: PodGroup) -> str:
        """What is free on devices that members could use."""
        snapshot = self._snapshot
        cluster = snapshot.cluster
        devices = {
            cluster.first[n] + offset
            for pod_request in group.needs.counts
            for n in pod_request.usable
            if snapshot.node_free_milli[n]
            for offset in pod_request.chooser.eligible(snapshot.node_shape[n])
        }
        milli = sum(cluster.free_milli[device] for device in devices)
        return f"{gpu_from_milli(milli)} {'is' if milli == 1000 else 'are'}"
