"""Why rules about other pods leave a pod no node: which rule, and with what numbers.

Speaks of the nodes that would hold the pod now, or of all that it may use where none would. What
somebody wrote into selectors is cut short.
"""

from collections.abc import Sequence

import numpy as np

from gpu_scheduler.core.affinity.masks import AffinityMasks, RuleMask, RuleType
from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityTerm,
    PodSelector,
    SpreadConstraint,
)
from gpu_scheduler.core.model.arrays import Flags, Ints
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.decision import Verdict as Answer
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import WaitingPod
from gpu_scheduler.core.model.snapshot import Snapshot

_MOST_TOLD = 3  # rules in one sentence
_MOST_CHARS = 120  # of a selector


class AffinityExplainer:
    """Sentences about one cycle, after its last placement."""

    def __init__(self, snapshot: Snapshot, affinity: AffinityMasks) -> None:
        self._snapshot = snapshot
        self._affinity = affinity
        self._names = [node.name for node in snapshot.cluster.nodes]

    def explain(self, pod: WaitingPod, pod_request: PodRequest, open_: Flags) -> Answer | None:
        """Why the pod may go to none of the nodes that would hold it; None if it may to one.

        ``open_``: [nodes] those that would hold it now.
        """
        if pod.affinity is None or not pod_request.usable:
            return None
        usable = np.zeros(len(self._names), dtype=np.bool_)
        usable[pod_request.usable] = True
        asked = open_ if open_.any() else usable
        verdicts = list(self._affinity.verdicts(pod.affinity, pod_request.pod_shape.where))
        verdicts.sort(key=lambda each: each.type is RuleType.OTHERS)  # its own rules say more
        if not verdicts:
            return None
        forbidden = np.logical_or.reduce([each.forbids for each in verdicts])
        if (asked & ~forbidden).any():
            return None
        needs = f"needs {wording.needs(pod_request.pod_shape)}"
        if missing := self._missing_key(verdicts):
            return Reason.UNSATISFIABLE, f"{needs}; {missing}"
        alone = [each for each in verdicts if not (asked & ~each.forbids).any()]
        if alone:
            return (
                Reason.WAITING_FOR_TOPOLOGY,
                f"{needs}; {self._of(alone[0], pod, pod_request, asked, alone=True)}",
            )
        several = [each for each in verdicts if (asked & each.forbids).any()]
        parts = [
            self._of(each, pod, pod_request, asked, alone=False) for each in several[:_MOST_TOLD]
        ]
        return Reason.WAITING_FOR_TOPOLOGY, f"{needs}; {'; and '.join(parts)}"

    def _missing_key(self, verdicts: Sequence[RuleMask]) -> str:
        for verdict in verdicts:
            if verdict.type in (RuleType.AFFINITY, RuleType.SPREAD):
                key = verdict.rule.key
                if not any(key in node.labels for node in self._snapshot.cluster.nodes):
                    return f"no node has the label {key}, which {verdict.rule.field} asks for"
        return ""

    def _of(
        self,
        verdict: RuleMask,
        pod: WaitingPod,
        pod_request: PodRequest,
        asked: Flags,
        *,
        alone: bool,
    ) -> str:
        """What one rule says; ``alone``: it is the only one in the way."""
        assert pod.affinity is not None
        rule, hit = verdict.rule, verdict.forbids & asked
        if verdict.type is RuleType.UNKNOWN:
            return f"{rule.field}: the pods that it selects are looked up for the next cycle"
        if isinstance(rule, SpreadConstraint):
            return self._spread(rule, pod.affinity, pod_request, hit)
        if verdict.type is RuleType.OTHERS:
            where = wording.names(self._at(hit))
            return f"pods near {where} keep it away by their podAntiAffinity over {rule.key}"
        if verdict.type is RuleType.ANTI_AFFINITY:
            return self._apart(rule, pod.affinity, pod_request, alone)
        return self._near(rule, pod.affinity, alone)

    def _apart(
        self, term: AffinityTerm, affinity: AffinityInfo, pod_request: PodRequest, alone: bool
    ) -> str:
        pods = self._affinity.counts.pods((term.pods,), staying=False)
        assert pods is not None  # there is a verdict
        division, there = self._affinity.of_domains(term, pods.of_node)
        could = {int(division.of_node[n]) for n in pod_request.could} - {-1}
        taken = sorted(d for d in could if there[d] > 0)
        left = sorted(could - set(taken))
        names = wording.names([division.names[d] for d in taken])
        count = f"all {len(could)}" if not left else f"{len(taken)} of {len(could)}"
        if affinity.is_one_of((term.pods,)):
            told = f"one such pod per {term.key}, and {count} that could hold it have one ({names})"
            end = "it starts when one of those has ended"
        else:
            told = f"pods with {_what(term.pods)} are on {count} {term.key} that could hold it"
            told, end = f"{told} ({names})", "it starts when one of those has none any more"
        if left:
            end = f"there is no room on {wording.names([division.names[d] for d in left])}"
        return f"{term.field}: {told}; {end}" if alone else f"{term.field}: {told}"

    def _near(self, term: AffinityTerm, affinity: AffinityInfo, alone: bool) -> str:
        terms = affinity.rules.affinity if affinity.rules is not None else ()
        selectors = tuple(each.pods for each in terms)
        found = self._affinity.counts.pods(selectors, staying=False, firm=True)
        assert found is not None  # there is a verdict
        division, there = self._affinity.of_domains(term, found.of_node)
        with_pods = np.flatnonzero(there > 0).tolist()
        if not with_pods:
            return f"{term.field}: no pod with {_what(term.pods)} is on a node with {term.key}"
        names = wording.names([division.names[d] for d in with_pods])
        told = f"pods with {_what(term.pods)} are on {names} of {term.key}"
        return f"{term.field}: {told}" + (", where there is no room" if alone else "")

    def _spread(
        self, rule: SpreadConstraint, affinity: AffinityInfo, pod_request: PodRequest, hit: Flags
    ) -> str:
        all_of_them = affinity.rules.spread if affinity.rules is not None else ()
        level = self._affinity.level(rule, all_of_them, pod_request.pod_shape.where)
        assert level is not None  # there is a verdict
        division = level.division
        what = f"{rule.field}: maxSkew {rule.max_skew} over {rule.key}"
        domains = [int(division.of_node[n]) for n in np.flatnonzero(hit)]
        inside = [d for d in domains if d >= 0]
        if not inside:
            return f"{what}: {wording.names(self._at(hit))} lack that label"
        has = f"{division.names[inside[0]]} has {level.pods[inside[0]]}"
        count = int(level.counts.sum())
        if count < rule.min_domains:
            least = f"only {count} of minDomains {rule.min_domains} are there"
            return f"{what}: {has}; {least}, so the least counts as 0"
        at_least = np.flatnonzero(level.counts & (level.firm == level.least)).tolist()
        why = self._why_not(at_least[0], division.of_node, pod_request)
        where = f"{division.names[at_least[0]]}, {why}"
        if len(at_least) > 1:
            where += f", and on {len(at_least) - 1} more"
        return f"{what}: {has}, the least is {level.least} on {where}"

    def _why_not(self, domain: int, of_node: Ints, pod_request: PodRequest) -> str:
        """Why no pod goes to the domain that should have one."""
        nodes = np.flatnonzero(of_node == domain).tolist()
        could = [n for n in nodes if n in set(pod_request.could)]
        if not could:
            return "which could not hold it (a node selector leaves such nodes out)"
        shape = pod_request.pod_shape
        closed = [self._snapshot.cluster.nodes[n].closed_to(shape) for n in could]
        if all(closed):
            return f"which {closed[0]}"
        return "which has no room"

    def _at(self, flags: Flags) -> list[str]:
        return [self._names[n] for n in np.flatnonzero(flags).tolist()]


def _what(selector: PodSelector) -> str:
    """'app=x,tier in (a,b) in namespace y', cut short."""
    parts = []
    for each in selector.labels or ():
        values = ",".join(each.values)
        if each.operator == "In" and len(each.values) == 1:
            parts.append(f"{each.key}={values}")
        elif each.operator in ("In", "NotIn"):
            parts.append(f"{each.key} {'in' if each.operator == 'In' else 'notin'} ({values})")
        else:
            parts.append(each.key if each.operator == "Exists" else f"!{each.key}")
    text = ",".join(parts) or "any labels"
    if selector.namespaces is None:
        text += " in any namespace"
    else:
        text += f" in namespace {' or '.join(selector.namespaces)}"
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
