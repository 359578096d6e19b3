"""Pods that name their node and ask the device plugin for GPUs: they hold what the node has.

From such a pod the kubelet drops what its node does not advertise, and runs it without.
"""

from collections.abc import Iterator

import pytest
from tests.api.fake_nodes import NODES
from tests.api.tenant import Tenant

SHARED = "nvidia.com/gpu.x"
SERVERS = tuple(f"r7525-{i}" for i in range(4))


def pause(tenant: Tenant, node: str) -> None:
    limits = {"limits": {SHARED: "1"}}
    container = {"name": "main", "image": "example/placeholder:1", "resources": limits}
    body = {"metadata": {"name": node}, "spec": {"nodeName": node, "containers": [container]}}
    answer = tenant.admin.create(f"/api/v1/namespaces/{tenant.name}/pods", body)
    assert answer.ok, answer


def advertise(tenant: Tenant, node: str, amount: str | None) -> None:
    """Give the node some of the resource, or take it away (None)."""
    resources = {"capacity": {SHARED: amount}, "allocatable": {SHARED: amount}}
    answer = tenant.admin.patch(f"{NODES}/{node}/status", {"status": resources})
    assert answer.ok, answer


@pytest.fixture
def paused(tenant: Tenant) -> Iterator[Tenant]:
    """One such pod on every node."""
    for node in SERVERS:
        pause(tenant, node)
    yield tenant
    for node in SERVERS:
        advertise(tenant, node, None)
        path = f"/api/v1/namespaces/{tenant.name}/pods/{node}?gracePeriodSeconds=0"
        tenant.admin.send("DELETE", path)


def test_a_resource_that_no_node_has_closes_no_node(paused: Tenant) -> None:
    paused.submit("whole", gpu=1, parallelism=8, completions=8)
    assert {a.node for a in paused.wait_placed("whole", 8)} == set(SERVERS)


def test_one_that_the_node_has_closes_it_for_as_long_as_it_has_it(paused: Tenant) -> None:
    for node in SERVERS:
        advertise(paused, node, "1")
    paused.submit("patient", gpu=0.5)
    message = paused.wait_reason("patient", "WaitingForGPU")
    assert f"{SERVERS[0]} has GPUs in use by {paused.name}/{SERVERS[0]}" in message
    advertise(paused, SERVERS[2], None)
    (allocation,) = paused.wait_placed("patient")
    assert allocation.node == SERVERS[2]
