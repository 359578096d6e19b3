"""Rules about other pods as the API server shows them, read for the planner."""

from typing import Any

import msgspec
import pytest

from gpu_scheduler.core.model.affinity import (
    AffinityInfo,
    AffinityTerm,
    PodSelector,
    SpreadConstraint,
)
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.affinity.pod_affinity import MOST_LABELS, pod_affinity_of

HOST = "kubernetes.io/hostname"
APP_X = {"matchLabels": {"app": "x"}}
IS_X = (Requirement("app", "In", ("x",)),)


def read(spec: dict[str, Any] | None = None, **labels: str) -> AffinityInfo:
    meta = {"name": "p", "namespace": "ns", "uid": "u", "labels": labels}
    return pod_affinity_of(
        msgspec.json.decode(msgspec.json.encode({"metadata": meta, "spec": spec or {}}), type=Pod)
    )


def affinity(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def term(**more: Any) -> dict[str, Any]:
    return {"topologyKey": HOST, "labelSelector": APP_X, **more}


def selected(**more: Any) -> PodSelector:
    rules = read(affinity("podAffinity", term(**more)), app="x", team="t").rules
    assert rules is not None
    return rules.affinity[0].pods


def test_pods_of_one_owner_are_one_sort_without_the_labels_that_are_theirs_alone() -> None:
    index = "batch.kubernetes.io/job-completion-index"
    first, second = (read(app="x", **{index: n}) for n in "12")
    assert first is second
    assert first == AffinityInfo("ns", (("app", "x"),), None)


def test_only_so_many_labels_are_known() -> None:
    many = read(**{f"l{n:04}": "x" for n in range(MOST_LABELS + 10)})
    assert len(many.labels) == MOST_LABELS


def test_required_terms_are_read_and_preferred_ones_are_not() -> None:
    spec = affinity("podAntiAffinity", term())
    spec["affinity"]["podAffinity"] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": term()}
        ]
    }
    rules = read(spec).rules
    assert rules is not None and not rules.affinity
    assert rules.anti_affinity == (AffinityTerm(HOST, PodSelector(("ns",), IS_X), "ns"),)
    assert rules.anti_affinity[0].field == "affinity.podAntiAffinity[0]"
    preferred = {"affinity": {"podAffinity": spec["affinity"]["podAffinity"]}}
    assert read(preferred).rules is None


@pytest.mark.parametrize(
    ("more", "namespaces"),
    [
        ({}, ("ns",)),
        ({"namespaces": ["a", "b"]}, ("a", "b")),
        ({"namespaceSelector": {}}, None),
        ({"namespaces": ["a"], "namespaceSelector": {}}, None),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}, ("b",)),
        (
            {
                "namespaces": ["a"],
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "In",
                            "values": ["c", "b"],
                        }
                    ]
                },
            },
            ("a", "b", "c"),
        ),
    ],
)
def test_namespaces_are_those_that_kubernetes_means(
    more: dict[str, Any], namespaces: tuple[str, ...] | None
) -> None:
    assert selected(**more).namespaces == namespaces


def test_selectors_are_those_that_kubernetes_means() -> None:
    assert selected(labelSelector={}).labels == ()
    assert selected(labelSelector=None).labels is None
    expression = {"key": "tier", "operator": "NotIn", "values": ["b", "a"]}
    both = {"matchLabels": {"app": "x"}, "matchExpressions": [expression]}
    not_in = Requirement("tier", "NotIn", ("a", "b"))
    assert selected(labelSelector=both).labels == (*IS_X, not_in)


def test_keys_add_the_pods_own_labels_once() -> None:
    own = Requirement("team", "In", ("t",))
    assert selected(matchLabelKeys=["team", "none"]).labels == (*IS_X, own)
    merged = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["before"]}]}
    before = (Requirement("team", "In", ("before",)),)
    assert selected(labelSelector=merged, matchLabelKeys=["team"]).labels == before
    not_own = Requirement("team", "NotIn", ("t",))
    assert selected(mismatchLabelKeys=["team"]).labels == (*IS_X, not_own)


def test_a_spread_constraint_has_the_defaults_of_kubernetes() -> None:
    constraint = {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": APP_X,
    }
    soft = {**constraint, "whenUnsatisfiable": "ScheduleAnyway"}
    more = {
        **constraint,
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
        "matchLabelKeys": ["hash"],
    }
    rules = read({"topologySpreadConstraints": [constraint, soft, more]}, hash="1").rules
    assert rules is not None
    plain, other = rules.spread
    assert plain == SpreadConstraint(2, "zone", PodSelector(("ns",), IS_X), 1, True, False)
    both = (*IS_X, Requirement("hash", "In", ("1",)))
    assert other == SpreadConstraint(2, "zone", PodSelector(("ns",), both), 3, False, True)
    assert other.field == "topologySpreadConstraints[2]"


@pytest.mark.parametrize(
    "more",
    [
        {"namespaceSelector": {"matchLabels": {"team": "x"}}},
        {"labelSelector": {"matchLabels": {"apps.kubernetes.io/pod-index": "0"}}},
        {"matchLabelKeys": ["batch.kubernetes.io/job-completion-index"]},
    ],
)
def test_what_is_not_understood_is_left_to_kube_scheduler_and_keeps_others_away(
    more: dict[str, Any],
) -> None:
    assert read(affinity("podAffinity", term(**more))).rules is None
    rules = read(affinity("podAntiAffinity", term(**more))).rules
    assert rules is not None and not rules.anti_affinity
    assert len(rules.anti_affinity_terms) == 1
