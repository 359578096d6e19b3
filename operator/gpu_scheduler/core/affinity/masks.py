"""Where pods may not go because of where other pods are: as kube-scheduler judges it.

One per planning cycle, on the snapshot; what the plan places counts at once. Required pod
affinity and anti-affinity, the anti-affinity of pods that are there, and topology spread. A pod
that no such rule concerns costs a look-up, and nothing where no pod has one.
Source: kubernetes.io/docs, "Assigning Pods to Nodes" and "Pod Topology Spread Constraints".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from gpu_scheduler.core.affinity.counts import AffinityCounts, Tally
from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityRules,
    AffinityTerm,
    PodSelector,
    Selectors,
    SpreadConstraint,
)
from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import NodeFilter, PodUID, WaitingJob, WaitingPod
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.nodes.node_masks import NodeMasks
from gpu_scheduler.core.nodes.topology import Division, Domains

_NO_RULES = AffinityRules()


class RuleType(Enum):
    """Whose rule it is, and of which type."""

    OTHERS = "others"  # anti-affinity of pods that are there
    ANTI_AFFINITY = "anti-affinity"
    AFFINITY = "affinity"
    SPREAD = "spread"
    UNKNOWN = "unknown"  # where its pods are is known in the next cycle only


class RuleMask(NamedTuple):
    """One rule, and the nodes that it forbids."""

    type: RuleType
    rule: AffinityTerm | SpreadConstraint
    forbids: Flags


class Level(NamedTuple):
    """How a spread constraint stands: pods by domain, the domains that count, and their least.

    ``firm``: of the pods, without those for which room is only held; the least is of these.
    """

    division: Division
    pods: Ints
    firm: Ints
    counts: Flags
    least: int


@dataclass(slots=True)
class _CachedMask:
    affinity: AffinityInfo  # holding it keeps its id its own
    asked: list[Tally]
    version: int  # of these together
    about: int  # terms of others
    forbids: Flags | None
    nowhere: bool | None = None  # whether no usable node is left; None = not asked


class AffinityMasks:
    """The rules of one cycle."""

    def __init__(self, snapshot: Snapshot, domains: Domains, masks: NodeMasks) -> None:
        self.counts = AffinityCounts(snapshot)
        self._snapshot = snapshot
        self._domains = domains
        self._masks = masks
        self._known: dict[tuple[int, int], _CachedMask] = {}
        self._about: dict[int, tuple[AffinityInfo, int, list[AffinityTerm]]] = {}
        self._asked: list[Tally] = []
        self._met: dict[PodUID, AffinityInfo] = {}  # those that this plan put somewhere
        self.dependents_of: dict[PodSelector, set[PodUID]] = {}
        """What pods that this plan put somewhere ask to be near, or to be spread among."""
        self.unsettled = False
        """Something was asked that is known in the next cycle only."""

    def forbidden(self, pod: WaitingPod, pod_request: PodRequest) -> Flags | None:
        """[nodes] Where the pod may not go now, not to be changed; None: it may go anywhere."""
        affinity = pod.affinity
        if affinity is None:
            return None
        key, about = (id(affinity), id(pod_request)), len(self._terms_about(affinity))
        known = self._known.get(key)
        if known is not None and known.about == about and known.version == _version(known.asked):
            return known.forbids
        flags: Flags | None = None
        asked: list[Tally] = []
        self._asked = asked
        for verdict in self.verdicts(affinity, pod_request.pod_shape.where):
            flags = verdict.forbids if flags is None else flags | verdict.forbids
        self._known[key] = _CachedMask(affinity, asked, _version(asked), about, flags)
        return flags

    def allows(self, pod: WaitingPod, pod_request: PodRequest, node: int) -> bool:
        """Whether the pod may go to a node now."""
        forbidden = self.forbidden(pod, pod_request)
        return forbidden is None or not forbidden[node]

    def nowhere(self, pod: WaitingPod, pod_request: PodRequest) -> bool:
        """Whether the pod may go to none of the nodes that take pods of its kind."""
        forbidden = self.forbidden(pod, pod_request)
        if forbidden is None:
            return not pod_request.usable
        known = self._known[id(pod.affinity), id(pod_request)]
        if known.nowhere is None:
            known.nowhere = bool(forbidden[pod_request.usable].all())
        return known.nowhere

    def add(self, pod: WaitingPod, node: int, sign: int = 1, *, held: bool = False) -> None:
        """A pod is put on a node, or (-1) taken off it; ``held``: room for it alone."""
        if pod.affinity is not None:
            self._met[pod.uid] = pod.affinity
            rules = pod.affinity.rules or _NO_RULES
            near = [term.pods for term in rules.affinity]
            for selector in (*near, *(constraint.pods for constraint in rules.spread)):
                self.dependents_of.setdefault(selector, set()).add(pod.uid)
            self.counts.add(pod.affinity, node, sign, held=held)

    def depended_on(self, pod: PodUID) -> bool:
        """Whether others that this plan put somewhere may be there because of this one."""
        affinity = self._met.get(pod)
        return affinity is not None and any(
            len(dependents) > (pod in dependents) and affinity.is_one_of((selector,))
            for selector, dependents in self.dependents_of.items()
        )

    def would_hold(
        self,
        placement: Iterable[tuple[WaitingPod, PodRequest, int]],
        gone: Iterable[tuple[PodUID, int | None]],
    ) -> bool:
        """Whether pods may go to their nodes, one after the other, once others are gone."""
        mark, holds = self.counts.mark(), True
        for uid, node in gone:
            affinity = self._snapshot.cluster.placed_pods.of(uid) or self._met.get(uid)
            if affinity is not None and node is not None:
                self.counts.add(affinity, node, -1)
        for pod, pod_request, node in placement:
            holds = self.allows(pod, pod_request, node)
            if not holds:
                break
            self.add(pod, node)
        self.counts.rollback(mark)
        return holds

    def concerns(self, pod: PodUID) -> bool:
        """Whether a pod on a node has rules, or others have rules about it."""
        affinity = self._snapshot.cluster.placed_pods.of(pod)
        if affinity is None:
            return False
        return affinity.rules is not None or bool(self._terms_about(affinity))

    def verdicts(self, affinity: AffinityInfo, where: NodeFilter) -> Iterator[RuleMask]:
        """Each rule about the pod, and the nodes that it forbids now; ``where``: of the pod."""
        for term in self._terms_about(affinity):
            yield RuleMask(
                RuleType.OTHERS, term, self._with_any(term.key, self._anti_affinity_pods(term))
            )
        rules = affinity.rules or _NO_RULES
        for term in rules.anti_affinity:
            found = self._pods((term.pods,), staying=False)
            if found is None:
                yield self._unknown(term)
            else:
                yield RuleMask(RuleType.ANTI_AFFINITY, term, self._with_any(term.key, found))
        if rules.affinity:
            yield from self._near(affinity, rules.affinity)
        for constraint in rules.spread:
            yield self._spread(affinity, constraint, rules.spread, where)

    def level(
        self,
        constraint: SpreadConstraint,
        all_of_them: Sequence[SpreadConstraint],
        where: NodeFilter,
    ) -> Level | None:
        """How the pods of a constraint are spread now; None: not known in this cycle."""
        found = self._pods((constraint.pods,), staying=True)
        firm = self._pods((constraint.pods,), staying=True, firm=True)
        if found is None or firm is None:
            return None
        division = self._domains.by(constraint.key)
        inside = division.of_node >= 0
        for other in all_of_them:
            if other.key != constraint.key:
                inside = inside & (self._domains.by(other.key).of_node >= 0)
        if constraint.by_affinity:
            inside = inside & self._masks.accepting(where)
        if constraint.by_taints:
            inside = inside & self._masks.tolerating(where.tolerations)
        size, of_node = len(division.names), division.of_node[inside]
        pods, sure = (_sum(of_node, each[inside], size) for each in (found, firm))
        counts: Flags = np.bincount(of_node, minlength=size) > 0
        enough = counts.any() and int(counts.sum()) >= constraint.min_domains
        return Level(division, pods, sure, counts, int(sure[counts].min()) if enough else 0)

    def of_domains(self, term: AffinityTerm, of_node: Ints) -> tuple[Division, Ints]:
        """Pods by domain."""
        division = self._domains.by(term.key)
        inside = division.of_node >= 0
        return division, _sum(division.of_node[inside], of_node[inside], len(division.names))

    def _spread(
        self,
        affinity: AffinityInfo,
        constraint: SpreadConstraint,
        all_of_them: Sequence[SpreadConstraint],
        where: NodeFilter,
    ) -> RuleMask:
        level = self.level(constraint, all_of_them, where)
        if level is None:
            return self._unknown(constraint)
        itself = int(affinity.is_one_of((constraint.pods,)))
        full = level.pods + itself - level.least > constraint.max_skew
        return RuleMask(RuleType.SPREAD, constraint, _at(level.division, full, outside=True))

    def _near(self, affinity: AffinityInfo, terms: Sequence[AffinityTerm]) -> Iterator[RuleMask]:
        """Each term asks for a pod that all terms select; the first of them may go anywhere."""
        selectors = tuple(term.pods for term in terms)
        found = self._pods(selectors, staying=False, firm=True)
        if found is None:
            yield self._unknown(terms[0])
            return
        divisions = [self._domains.by(term.key) for term in terms]
        anywhere = np.logical_or.reduce([each.of_node >= 0 for each in divisions])
        first = not found[anywhere].any() and affinity.is_one_of(selectors)
        for term, division in zip(terms, divisions, strict=True):
            if first:
                yield RuleMask(RuleType.AFFINITY, term, division.of_node < 0)
            else:
                _, pods = self.of_domains(term, found)
                yield RuleMask(RuleType.AFFINITY, term, _at(division, pods <= 0, outside=True))

    def _with_any(self, key: str, of_node: Ints) -> Flags:
        """[nodes] Whether a pod of some is in the same domain."""
        division = self._domains.by(key)
        inside = division.of_node >= 0
        pods = _sum(division.of_node[inside], of_node[inside], len(division.names))
        return _at(division, pods > 0, outside=False)

    def _pods(self, selectors: Selectors, *, staying: bool, firm: bool = False) -> Ints | None:
        tally = self.counts.pods(selectors, staying=staying, firm=firm)
        if tally is None:
            return None
        self._asked.append(tally)
        return tally.of_node

    def _anti_affinity_pods(self, term: AffinityTerm) -> Ints:
        tally = self.counts.anti_affinity_tally(term)
        self._asked.append(tally)
        return tally.of_node

    def _unknown(self, rule: AffinityTerm | SpreadConstraint) -> RuleMask:
        self.unsettled = True
        return RuleMask(
            RuleType.UNKNOWN, rule, np.ones(len(self._snapshot.node_shape), dtype=np.bool_)
        )

    def _terms_about(self, affinity: AffinityInfo) -> list[AffinityTerm]:
        """The anti-affinity of pods on nodes, those of this plan among them, against such a pod."""
        new = self.counts.new_terms
        known = self._about.get(id(affinity))
        if known is None or known[1] != len(new):
            terms = [*self._snapshot.cluster.placed_pods.about(affinity)]
            terms += self.counts.new_about(affinity)
            known = self._about[id(affinity)] = affinity, len(new), terms
        return known[2]


def masks_of(
    snapshot: Snapshot, domains: Domains, masks: NodeMasks, jobs: Iterable[WaitingJob]
) -> AffinityMasks | None:
    """The rules of a cycle; None where no pod has any."""
    if not snapshot.cluster.placed_pods.anti_affinity_pods() and not any(job.ruled for job in jobs):
        return None
    return AffinityMasks(snapshot, domains, masks)


def _version(tallies: list[Tally]) -> int:
    return sum(tally.version for tally in tallies)


def _sum(of_node: Ints, amounts: Ints, size: int) -> Ints:
    found: Ints = np.bincount(of_node, weights=amounts, minlength=size).astype(np.int64)
    return found


def _at(division: Division, of_domain: Flags, *, outside: bool) -> Flags:
    """What holds of a domain, for its nodes; ``outside``: for nodes without the label."""
    found: Flags = np.append(of_domain, outside)[division.of_node]  # NONE is the last
    return found
