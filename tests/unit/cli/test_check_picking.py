"""Whoever upgrades learns which namespaces the policy on devices would refuse pods of."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.cli.installation import named, operator, well

from gpu_scheduler.api.names import VISIBLE_DEVICES
from gpu_scheduler.cli.checks.facts import Check, CheckInputs, CheckState
from gpu_scheduler.cli.checks.picking import picking

ALL = {"name": VISIBLE_DEVICES, "value": "all"}
OURS = {"fieldRef": {"fieldPath": "metadata.annotations['gpu-scheduler.io/c0-devices']"}}
NVIDIA = {"runtimeClassName": "nvidia"}


def pod(
    namespace: str, *env: dict[str, Any], limits: str = "", labels: Any = None, **spec: Any
) -> dict[str, Any]:
    container = {"name": "main", "env": list(env), "resources": {"limits": {limits: "1"}}}
    meta = {"name": "p", "namespace": namespace, "labels": labels or {}}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def policy(*exempt: str) -> dict[str, Any]:
    rule = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(exempt)}
    selector = {"matchExpressions": [rule]} if exempt else {}
    found = named("gpu-scheduler-devices")
    return {**found, "spec": {"matchConstraints": {"namespaceSelector": selector}}}


def facts(*pods: dict[str, Any], exempt: tuple[str, ...] = ("gpus", "kube-system")) -> CheckInputs:
    found: Any = operator()
    env = [{"name": "GPUSCHED_RUNTIME_CLASS", "value": "nvidia"}]
    found["spec"]["template"]["spec"]["containers"][0]["env"] = env
    return replace(well(), pods=pods, deployments=[found], validating=[policy(*exempt)])


@pytest.mark.parametrize(
    "made",
    [
        pod("monitoring", ALL),
        pod("monitoring", {"name": VISIBLE_DEVICES, "valueFrom": {"configMapKeyRef": {}}}),
        pod("monitoring", ALL, limits="nvidia.com/gpu", **NVIDIA),
        pod("monitoring", **NVIDIA),
        pod("monitoring", limits="nvidia.com/hostdev", **NVIDIA),
        pod("monitoring", initContainers=[{"name": "first", "env": [ALL]}]),
    ],
)
def test_a_namespace_whose_pods_pick_is_named_with_what_exempts_it(made: dict[str, Any]) -> None:
    (found,) = picking(facts(pod("kube-system", ALL), pod("gpus", ALL), made))
    assert found.state is CheckState.WARN
    assert "in monitoring (such as monitoring/p)" in found.what
    told = "--set 'admission.devices.exemptNamespaces={kube-system,monitoring}'"
    assert told in found.mend


@pytest.mark.parametrize(
    "made",
    [
        pod("team-a"),
        pod("team-a", {"name": VISIBLE_DEVICES, "value": "void"}, **NVIDIA),
        pod("team-a", {"name": VISIBLE_DEVICES}),
        pod("team-a", {"name": VISIBLE_DEVICES, "valueFrom": OURS}, **NVIDIA),
        pod("team-a", limits="nvidia.com/gpu", **NVIDIA),
        pod("team-a", limits="nvidia.com/mig-1g.5gb", **NVIDIA),
        pod("team-a", runtimeClassName="other"),
        pod("team-a", ALL, labels={"gpu-scheduler.io/job": "x"}),
    ],
)
def test_a_pod_that_picks_nothing_is_nothing_to_tell_of(made: dict[str, Any]) -> None:
    assert picking(facts(made)) == []


def test_before_an_upgrade_all_namespaces_are_named() -> None:
    (found,) = picking(facts(pod("kube-system", ALL), pod("monitoring", ALL), exempt=()))
    assert "in kube-system, monitoring (" in found.what
    assert found.mend == ""


def test_where_no_policy_is_wanted_nothing_is_refused() -> None:
    assert picking(replace(facts(pod("monitoring", ALL)), validating=[])) == []


def test_who_may_not_read_pods_is_told() -> None:
    found: list[Check] = picking(replace(facts(), pods=None))
    assert [each.state for each in found] == [CheckState.UNKNOWN]
