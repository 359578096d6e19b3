from typing import Any

import pytest

from gpu_scheduler.jobs.write_path import WritePath, choose, claim_need, claims

SHARED = {"metadata": {"name": "pv"}, "spec": {"accessModes": ["ReadWriteMany"]}}


def mounts(*names: str) -> dict[str, Any]:
    return {
        "containers": [{"name": "a"}],
        "volumes": [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names],
    }


def claim(phase: str = "Bound", mode: str = "ReadWriteMany", **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "data", **meta},
        "spec": {"accessModes": [mode], "volumeName": "pv"},
        "status": {"phase": phase},
    }


UNBOUND = "claim data is not bound yet"
TIED = "the volume of claim data is tied to certain nodes"
ALONE = "claim data may be used by one pod at a time"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAME = "kubernetes.io/metadata.name"


def near(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}}


BIND: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing special": ({"containers": [{"name": "a"}]}, {}),
    "bound shared volume": (mounts("data"), {"data": ""}),
    "empty lists": ({"containers": [], "volumes": None, "affinity": {"podAffinity": {}}}, {}),
    "no terms": (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
        {},
    ),
    "container port only": ({"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}, {}),
    "host network without ports": ({"hostNetwork": True, "containers": [{"name": "a"}]}, {}),
    "node affinity": (
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}},
        {},
    ),
    "pod affinity": (near(labelSelector={"matchLabels": {"app": "x"}}), {}),
    "affinity in all namespaces": (near(namespaceSelector={}), {}),
    "affinity in a namespace by its name": (
        near(namespaceSelector={"matchLabels": {NAME: "x"}}),
        {},
    ),
    "preferred anti-affinity": (
        {
            "affinity": {
                "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}
            }
        },
        {},
    ),
    "spread": (
        {"topologySpreadConstraints": [{"maxSkew": 1}, {"whenUnsatisfiable": "ScheduleAnyway"}]},
        {},
    ),
    "what is not even a rule": (
        {"affinity": {"podAffinity": {REQUIRED: [3]}}, "topologySpreadConstraints": {"a": 1}},
        {},
    ),
    "other volumes": ({"volumes": [{"name": "t", "emptyDir": {}}]}, {}),
}

GATE: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "missing claim": (mounts("data"), {}, "claim data does not exist yet"),
    "unbound claim": (
        mounts("a", "data"),
        {"a": "", "data": UNBOUND},
        UNBOUND,
    ),
    "local volume": (mounts("data"), {"data": TIED}, TIED),
    "one pod only": (mounts("data"), {"data": ALONE}, ALONE),
    "ephemeral volume": (
        {"volumes": [{"name": "s", "ephemeral": {"volumeClaimTemplate": {}}}]},
        {},
        "volume s is provisioned for each pod",
    ),
    "exclusive volume": (
        {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]},
        {},
        "volume d may be attached once",
    ),
    "affinity by labels of namespaces": (
        near(namespaceSelector={"matchLabels": {"team": "x"}}),
        {},
        "affinity.podAffinity[0].namespaceSelector selects by labels of namespaces",
    ),
    "affinity by names of namespaces, and by none": (
        near(
            namespaceSelector={
                "matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["a"]}]
            }
        ),
        {},
        "affinity.podAffinity[0].namespaceSelector selects by labels of namespaces",
    ),
    "affinity by index": (
        near(matchLabelKeys=["batch.kubernetes.io/job-completion-index"]),
        {},
        "affinity.podAffinity[0] selects by batch.kubernetes.io/job-completion-index, which "
        "differs from pod to pod of a Job",
    ),
    "spread by index": (
        {
            "topologySpreadConstraints": [
                {"labelSelector": {"matchLabels": {"apps.kubernetes.io/pod-index": "1"}}}
            ]
        },
        {},
        "topologySpreadConstraints[0] selects by apps.kubernetes.io/pod-index, which differs "
        "from pod to pod of a Job",
    ),
    "more constraints than anybody needs": (
        {"topologySpreadConstraints": [{"maxSkew": 1}] * 17},
        {},
        "topologySpreadConstraints has 17 rules, the planner judges 16",
    ),
    "resource claims": (
        {"resourceClaims": [{"name": "nic"}]},
        {},
        "resourceClaims are allocated by kube-scheduler",
    ),
    "host port": (
        {"containers": [{"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}]}]},
        {},
        "container a takes host port 8080",
    ),
    "host port of a sidecar": (
        {"initContainers": [{"name": "s", "ports": [{"containerPort": 80, "hostPort": 81}]}]},
        {},
        "container s takes host port 81",
    ),
    "host network with ports": (
        {"hostNetwork": True, "containers": [{"name": "a", "ports": [{"containerPort": 80}]}]},
        {},
        "container a takes host port 80",
    ),
}


@pytest.mark.parametrize("case", BIND)
def test_bind_when_kube_scheduler_has_nothing_to_add(case: str) -> None:
    assert choose(*BIND[case]) == (WritePath.BIND, "")


@pytest.mark.parametrize("case", GATE)
def test_gate_when_only_kube_scheduler_can_do_it(case: str) -> None:
    spec, facts, reason = GATE[case]
    assert choose(spec, facts) == (WritePath.GATE, reason)


@pytest.mark.parametrize("where", ["containers", "initContainers"])
@pytest.mark.parametrize("field", ["limits", "requests"])
def test_what_a_device_class_serves_is_kube_schedulers(where: str, field: str) -> None:
    asking = {where: [{"name": "a", "resources": {field: {"example.com/nic": "1", "cpu": 1}}}]}
    classes = {"example.com/nic": "nic.example.com"}

    def class_of(resource: str) -> str:
        return classes.get(resource, "")

    said = "example.com/nic is served by DeviceClass nic.example.com, by claims of kube-scheduler"
    assert choose(asking, {}, class_of) == (WritePath.GATE, said)
    assert choose(asking, {}) == (WritePath.BIND, "")


def test_claims_are_named_once_in_order() -> None:
    assert claims(mounts("b", "a", "b")) == ("b", "a")
    assert claims({"containers": []}) == ()


@pytest.mark.parametrize(
    ("pvc", "pv", "need"),
    [
        (claim(), SHARED, ""),
        (claim("Pending"), None, UNBOUND),
        (claim("Lost"), None, UNBOUND),
        (claim(), None, UNBOUND),
        (claim(deletionTimestamp="2026-01-01T00:00:00Z"), SHARED, UNBOUND),
        (claim(mode="ReadWriteOncePod"), SHARED, ALONE),
        (
            claim(),
            {"metadata": {}, "spec": {"nodeAffinity": {"required": {}}}},
            TIED,
        ),
        (
            claim(),
            {"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}, "spec": {}},
            TIED,
        ),
    ],
)
def test_the_need_of_a_claim(pvc: dict[str, Any], pv: dict[str, Any] | None, need: str) -> None:
    assert claim_need(pvc, pv) == need
