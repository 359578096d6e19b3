"""Resources of nodes that are neither CPU nor memory, of our pods and of others', on a cluster."""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.fake_nodes import node, with_nodes
from tests.api.tenant import Json, Tenant, template

NODE, HCA = "ib", "rdma/hca"


@pytest.fixture
def two(tenant: Tenant) -> Iterator[None]:
    """A node with two of them, and four GPUs."""
    made = node(NODE, "Tesla-T4", 4)
    made["status"]["capacity"] = made["status"]["allocatable"] = {
        **made["status"]["allocatable"],
        HCA: "2",
    }
    with with_nodes(tenant.admin, made):
        yield
        tenant.empty()  # before the node: without it pods stay for a minute


def asking(amount: int) -> Json:
    made = template()
    made["spec"]["containers"][0]["resources"] = {"limits": {HCA: str(amount)}}
    return made


def stranger(admin: Caller, namespace: str) -> str:
    """A pod of nobody's job that holds one of them; its path."""
    limits = {"limits": {HCA: "1"}, "requests": {HCA: "1"}}
    spec = {
        "nodeName": NODE,
        "containers": [{"name": "main", "image": "x", "resources": limits}],
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    assert admin.create(path, {"metadata": {"name": "stranger"}, "spec": spec}).ok
    return f"{path}/stranger"


def test_what_others_hold_counts_and_who_waits_is_told_what_for(tenant: Tenant, two: None) -> None:
    path = stranger(tenant.admin, tenant.name)
    tenant.submit("first", gpu=1, template=asking(1))
    (place,) = tenant.wait_placed("first")
    assert place.node == NODE
    tenant.submit("second", gpu=1, template=asking(1))
    tenant.wait_reason("second", "WaitingForResources")
    assert f"{HCA} (needs 1, 0 free)" in tenant.status("second")["message"]
    tenant.submit("never", gpu=1, template=asking(3))
    tenant.wait_reason("never", "Unsatisfiable")
    assert f"needs 3 {HCA}" in tenant.status("never")["message"]
    assert tenant.admin.send("DELETE", f"{path}?gracePeriodSeconds=0").ok
    (place,) = tenant.wait_placed("second")
    assert place.node == NODE
