"""Rules about other pods in a pod template that the planner leaves to kube-scheduler, and why.

Required affinity, anti-affinity and topology spread are the planner's; what is only preferred is
nobody's: neither path heeds it, since kube-scheduler gets a pod with its node. What is left are
selectors by labels of namespaces, which we do not watch, and by labels that single pods of one Job
have, and more rules than anybody needs. ``state.affinity.pod_affinity`` reads the same
fields of pods.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_scheduler.core.model.affinity import MOST_RULES, NAMESPACE_NAME, PER_POD_LABELS

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def beyond_the_planner(spec: Mapping[str, Any]) -> Iterator[str]:
    """What of the rules of a pod spec asks for the gate path; the form is not judged here."""
    affinity = _object(spec.get("affinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = _objects(_object(affinity.get(kind)).get(REQUIRED))
        yield from _each(f"affinity.{kind}", terms)
    spread = _objects(spec.get("topologySpreadConstraints"))
    yield from _each("topologySpreadConstraints", spread)


def _each(field: str, rules: list[Mapping[str, Any]]) -> Iterator[str]:
    if len(rules) > MOST_RULES:
        yield f"{field} has {len(rules)} rules, the planner judges {MOST_RULES}"
    for index, rule in enumerate(rules):
        if names := sorted(_keys(rule) & PER_POD_LABELS):
            yield f"{field}[{index}] selects by {names[0]}, which differs from pod to pod of a Job"
        if _asks_for_labels(rule.get("namespaceSelector")):
            yield f"{field}[{index}].namespaceSelector selects by labels of namespaces"


def _keys(rule: Mapping[str, Any]) -> set[str]:
    selector = _object(rule.get("labelSelector"))
    found = {*_object(selector.get("matchLabels"))}
    found.update(str(each.get("key")) for each in _objects(selector.get("matchExpressions")))
    for keys in (rule.get("matchLabelKeys"), rule.get("mismatchLabelKeys")):
        found.update(str(key) for key in (keys if isinstance(keys, list) else ()))
    return found


def _asks_for_labels(selector: object) -> bool:
    """Whether a namespaceSelector says more than one list of names, or all."""
    labels = _object(_object(selector).get("matchLabels"))
    expressions = _objects(_object(selector).get("matchExpressions"))
    keys = {*labels, *(str(each.get("key")) for each in expressions)}
    others = any(each.get("operator") != "In" for each in expressions)
    return bool(keys - {NAMESPACE_NAME}) or others or len(labels) + len(expressions) > 1


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
