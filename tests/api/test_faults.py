"""Nodes that go, an API server that is away, placements that do not work out."""

from collections.abc import Iterator

import pytest
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.conftest import administrator
from tests.api.pod_watch import Pods, PodWatch
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import Tenant, runs, template, until

from cluster import Running


@pytest.fixture
def running(control_plane: Running) -> Iterator[Running]:
    """A new operator for each test: it forgets which nodes the last one had reason to avoid."""
    with operating(control_plane, {**CALM_LEASE, "stuck_seconds": "2", "avoid_seconds": "60"}):
        yield control_plane


@pytest.fixture
def tenant(running: Running) -> Iterator[Tenant]:
    made = Tenant(administrator(running)).create(quota=8)
    yield made
    made.delete()


def cordon(tenant: Tenant, node: str, value: bool) -> None:
    answer = tenant.admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": value}})
    assert answer.ok, answer


def test_a_cordoned_node_takes_nothing_until_it_is_back(tenant: Tenant) -> None:
    nodes = [f"r7525-{i}" for i in range(4)]
    for node in nodes:
        cordon(tenant, node, True)
    try:
        tenant.submit("patient", gpu=0.5)
        message = tenant.wait_reason("patient", "WaitingForResources")
        assert "cordoned" in message, message
        cordon(tenant, nodes[2], False)
        (allocation,) = tenant.wait_placed("patient")
        assert allocation.node == nodes[2]
    finally:
        for node in nodes:
            cordon(tenant, node, False)


@pytest.mark.skipif(not HAS_MUTATING_POLICIES, reason="nothing is said with the failure: ADR 0073")
def test_a_pod_that_the_kubelet_rejects_is_placed_elsewhere_and_nothing_is_charged(
    tenant: Tenant, running: Running
) -> None:
    rejecting = template(runs(1, reject_on="r7525-0,r7525-1"))
    unexplained: set[str] = set()

    def look(pods: Pods) -> None:
        unexplained.update(
            uid
            for uid, pod in pods.items()
            if pod["status"]["phase"] == "Failed"
            and all(c["type"] != "DisruptionTarget" for c in pod["status"].get("conditions", ()))
        )

    with PodWatch(running, tenant.name, look):
        tenant.submit(
            "unlucky", gpu=0.5, parallelism=4, completions=4, retries=0, template=rejecting
        )
        tenant.wait_phase("unlucky", "Succeeded")
    assert unexplained == set(), "the Job controller may have looked at one of them"
    status = tenant.batch_job("unlucky")["status"]
    assert status["succeeded"] == 4
    assert not status.get("failedIndexes")
    assert status.get("failed", 0) == 0
    assert {a.node for a in tenant.allocations("unlucky")} >= {"r7525-0"}  # it was tried there
    tenant.wait_event("unlucky", "PodRejected")


def test_a_pod_that_is_stuck_after_its_gate_is_gone_is_evicted_and_placed_elsewhere(
    tenant: Tenant,
) -> None:
    # Anti-affinity by labels of namespaces, which only kube-scheduler judges: the gate path.
    spread = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app": "x"}},
                    "namespaceSelector": {
                        "matchExpressions": [
                            {"key": "kubernetes.io/metadata.name", "operator": "Exists"}
                        ]
                    },
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    blocked = {
        "metadata": {"name": "in-the-way", "labels": {"app": "x"}},
        "spec": {
            "nodeName": "r7525-0",
            "containers": [{"name": "main", "image": "example/placeholder:1"}],
        },
    }
    assert tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/pods", blocked).ok
    tenant.submit("gated", gpu=0.5, retries=0, template=template(affinity=spread))
    job = until(lambda: (j := tenant.batch_job("gated"))["kind"] == "Job" and j, "there is a Job")
    gates = job["spec"]["template"]["spec"]["schedulingGates"]
    assert [g["name"] for g in gates] == ["gpu-scheduler.io/placement"]
    tenant.wait_phase("gated", "Running")
    (pod,) = [p for p in tenant.pods("gated") if not p["metadata"].get("deletionTimestamp")]
    assert pod["spec"]["nodeName"] != "r7525-0"
    assert tenant.batch_job("gated")["status"].get("failed", 0) == 0
    tenant.wait_event("gated", "PodStuck")
    assert tenant.admin.send("DELETE", f"/api/v1/namespaces/{tenant.name}/pods/in-the-way").ok


def test_pods_of_a_node_that_is_gone_are_placed_elsewhere(tenant: Tenant, running: Running) -> None:
    tenant.submit("moving", gpu=1, parallelism=2, completions=2, retries=0)
    home = tenant.wait_placed("moving", 2)[0].node
    node = tenant.admin.get(f"/api/v1/nodes/{home}").body
    assert tenant.admin.send("DELETE", f"/api/v1/nodes/{home}").ok
    try:
        until(
            lambda: (
                len(live := [a for a in tenant.allocations("moving") if a.node != home]) == 2
                and live
            ),
            "both pods are on other nodes",
            150,
        )
        until(lambda: tenant.status("moving").get("podSummary") == "2/0/2", "both run")
        assert tenant.batch_job("moving")["status"].get("failed", 0) == 0
    finally:
        meta = {k: node["metadata"][k] for k in ("name", "labels", "annotations")}
        running.add_nodes(
            [{"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": node["status"]}]
        )


def test_a_node_that_is_not_ready_takes_nothing(tenant: Tenant) -> None:
    node = "/api/v1/nodes/r7525-3"
    silent = {"metadata": {"annotations": {"kwok.x-k8s.io/silent": "true"}}}
    assert tenant.admin.patch(node, silent).ok
    conditions = tenant.admin.get(node).body["status"]["conditions"]
    for condition in conditions:
        if condition["type"] == "Ready":
            condition["status"] = "Unknown"
    assert tenant.admin.patch(f"{node}/status", {"status": {"conditions": conditions}}).ok
    try:
        tenant.submit("fill", gpu=1, parallelism=8, completions=8)
        placed = tenant.wait_placed("fill", 6)
        assert "r7525-3" not in {a.node for a in placed}
        tenant.wait_reason("fill", "WaitingForResources")
    finally:
        assert tenant.admin.patch(
            node, {"metadata": {"annotations": {"kwok.x-k8s.io/silent": None}}}
        ).ok
    tenant.wait_placed("fill", 8)
