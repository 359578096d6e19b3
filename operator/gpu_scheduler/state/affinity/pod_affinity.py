"""Who a pod is to rules about other pods, and its own: read off the pod as the API server has it.

Its own rules are the required ones that the planner understands; of others it is left to
kube-scheduler to judge (``jobs.write_path``). Terms by which a pod on a node keeps others away are
read so that they never say less than they mean. Pods alike share one ``AffinityInfo``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from sys import intern

import msgspec

from gpu_scheduler.core.model.affinity import (
    MOST_RULES,
    NAMESPACE_NAME,
    PER_POD_LABELS,
    AffinityInfo,
    AffinityRules,
    AffinityTerm,
    PodSelector,
    SpreadConstraint,
)
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.kube.objects import (
    Affinity,
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpread,
)
from gpu_scheduler.limits.bounded import Shared

MOST_LABELS = 64  # of a pod that are known, in the order of their keys
MOST_BYTES = 16 << 10  # of a pod's rules
_HARD = "DoNotSchedule"
_MOST_KEY = 317  # characters of a label's key
_ENCODER = msgspec.json.Encoder()
_SIGNATURES: Shared[AffinityInfo] = Shared()  # what is known of pods alike


def pod_affinity_of(pod: Pod) -> AffinityInfo:
    """Who the pod is, and its rules."""
    meta, spec = pod.metadata, pod.spec
    labels = tuple(sorted(each for each in meta.labels.items() if each[0] not in PER_POD_LABELS))
    if len(labels) > MOST_LABELS:
        labels = labels[:MOST_LABELS]
    ruled = spec.topology_spread_constraints or spec.affinity
    rules = _rules(pod) if ruled else None
    return _SIGNATURES.same(AffinityInfo(intern(meta.namespace), labels, rules))


def _rules(pod: Pod) -> AffinityRules | None:
    affinity, namespace, labels = pod.spec.affinity, pod.metadata.namespace, pod.metadata.labels
    said = affinity, pod.spec.topology_spread_constraints
    if len(_ENCODER.encode(said)) > MOST_BYTES:
        return _of_heavy(affinity, namespace)
    near: list[AffinityTerm] = []
    apart: list[AffinityTerm] = []
    borne: list[AffinityTerm] = []
    if affinity is not None:
        for field, term in _terms("podAffinity", affinity.pod_affinity):
            if not not_understood(term):
                near.append(_term(field, term, namespace, labels))
        for field, term in _terms("podAntiAffinity", affinity.pod_anti_affinity):
            (borne if not_understood(term) else apart).append(_term(field, term, namespace, labels))
    level = [
        _spread(f"topologySpreadConstraints[{i}]", each, namespace, labels)
        for i, each in enumerate(pod.spec.topology_spread_constraints[:MOST_RULES])
        if each.when_unsatisfiable == _HARD and not names_single_pods(each)
    ]
    if not (near or apart or level or borne):
        return None
    return AffinityRules(tuple(near), tuple(apart), tuple(level), tuple(borne))


def _of_heavy(affinity: Affinity | None, namespace: str) -> AffinityRules | None:
    """Rules that say too much to be kept: whom they keep away is everybody of their namespace.

    A pod that waits is not planned with them (``slim``); of one that runs nothing else is asked.
    """
    found = affinity.pod_anti_affinity if affinity is not None else None
    everybody = PodSelector((namespace,), ())
    keys = {
        term.topology_key[:_MOST_KEY]: field for field, term in _terms("podAntiAffinity", found)
    }
    borne = tuple(AffinityTerm(key, everybody, namespace, field) for key, field in keys.items())
    return AffinityRules(others_judge=borne) if borne else None


def not_understood(term: PodAffinityTerm) -> str:
    """What of a term the planner does not understand; empty where it understands it all."""
    if names_single_pods(term):
        return "it selects single pods of an owner"
    if term.namespace_selector is not None and _named(term.namespace_selector) is None:
        return "its namespaceSelector asks for labels of namespaces"
    return ""


def names_single_pods(rule: PodAffinityTerm | TopologySpread) -> bool:
    """Whether a rule asks for labels by which the pods of one owner differ."""
    keys = {*rule.match_label_keys}
    if isinstance(rule, PodAffinityTerm):
        keys.update(rule.mismatch_label_keys)
    if rule.label_selector is not None:
        keys.update(rule.label_selector.match_labels)
        keys.update(each.key for each in rule.label_selector.match_expressions)
    return not keys.isdisjoint(PER_POD_LABELS)


def _terms(kind: str, found: PodAffinity | None) -> Iterator[tuple[str, PodAffinityTerm]]:
    terms = found.required_during_scheduling_ignored_during_execution if found else None
    for index, term in enumerate((terms or ())[:MOST_RULES]):
        yield f"affinity.{kind}[{index}]", term


def _term(
    field: str, term: PodAffinityTerm, namespace: str, labels: Mapping[str, str]
) -> AffinityTerm:
    """A term, which selects rather more pods than fewer where it cannot be understood."""
    namespaces: tuple[str, ...] | None = term.namespaces
    if term.namespace_selector is not None:
        named = _named(term.namespace_selector)
        namespaces = None if named is None else (*term.namespaces, *(named))
        if not term.namespace_selector.match_labels and (
            not term.namespace_selector.match_expressions
        ):
            namespaces = None
    elif not namespaces:
        namespaces = (namespace,)
    wanted = _requirements(
        term.label_selector, labels, term.match_label_keys, term.mismatch_label_keys
    )
    if wanted is not None:
        wanted = tuple(each for each in wanted if each.key not in PER_POD_LABELS)
    return AffinityTerm(term.topology_key, PodSelector(namespaces, wanted), namespace, field)


def _named(selector: LabelSelector) -> tuple[str, ...] | None:
    """The namespaces that a selector names; () where it is empty, None where it asks for more."""
    found = set(selector.match_labels.values())
    several = len(selector.match_labels) + len(selector.match_expressions) > 1
    keys = [*selector.match_labels, *(each.key for each in selector.match_expressions)]
    for each in selector.match_expressions:
        if each.operator != "In":
            return None
        found.update(each.values)
    if several or any(key != NAMESPACE_NAME for key in keys):
        return None
    return tuple(sorted(found))


def _spread(
    field: str, found: TopologySpread, namespace: str, labels: Mapping[str, str]
) -> SpreadConstraint:
    wanted = _requirements(found.label_selector, labels, found.match_label_keys, ())
    return SpreadConstraint(
        found.max_skew,
        found.topology_key,
        PodSelector((namespace,), wanted),
        found.min_domains or 1,
        (found.node_affinity_policy or "Honor") == "Honor",
        (found.node_taints_policy or "Ignore") == "Honor",
        field,
    )


def _requirements(
    selector: LabelSelector | None,
    labels: Mapping[str, str],
    match: Iterable[str],
    mismatch: Iterable[str],
) -> tuple[Requirement, ...] | None:
    """A label selector with what the pod's own labels add to it, in a fixed order; None = no pod.

    API servers write what ``matchLabelKeys`` mean into the selector itself; then that counts.
    """
    if selector is None:
        return None
    found = {Requirement(key, "In", (value,)) for key, value in selector.match_labels.items()}
    found.update(map(_requirement, selector.match_expressions))
    asked = {each.key for each in found}
    for keys, operator in ((match, "In"), (mismatch, "NotIn")):
        for key in keys:
            if key in labels and key not in asked:
                found.add(Requirement(key, operator, (labels[key],)))
    return tuple(sorted(found, key=lambda each: (each.key, each.operator, each.values)))


def _requirement(found: Requirement) -> Requirement:
    return replace(found, values=tuple(sorted(found.values)))
