"""Resources of nodes that are neither CPU nor memory, of our pods and of others', on a cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.api.caller import Caller
from tests.api.fake_nodes import node, with_nodes
from tests.api.tenant import Json, Tenant, template, until

from cluster.programs import KUBERNETES_MINOR

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


def served(admin: Caller, resource: str, name: str, node_name: str, devices: int) -> Iterator[None]:
    """A DRA driver's: devices on a node, and a class that calls them as an extended resource."""
    group, driver = "/apis/resource.k8s.io/v1", f"{name}.example.com"
    spec = {
        "extendedResourceName": resource,
        "selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}],
    }
    devices_there = [{"name": f"d{number}"} for number in range(devices)]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": driver, "nodeName": node_name, "pool": pool, "devices": devices_there}
    made = {"deviceclasses": spec, "resourceslices": slice_spec}
    for plural, body in made.items():
        answer = admin.create(f"{group}/{plural}", {"metadata": {"name": name}, "spec": body})
        assert answer.ok, answer
    yield
    for plural in made:
        assert admin.send("DELETE", f"{group}/{plural}/{name}").ok


@pytest.mark.skipif(KUBERNETES_MINOR < 36, reason="DRAExtendedResource is on from 1.36")
def test_what_a_dra_driver_serves_is_no_nodes_and_kube_scheduler_gives_it(tenant: Tenant) -> None:
    nic = f"example.com/nic-{tenant.name}"
    made = template()
    made["spec"]["containers"][0]["resources"] = {"limits": {nic: "1"}}
    with with_nodes(tenant.admin, node("dra", "Tesla-T4", 4)), ExitStack() as stack:
        tenant.submit("first", gpu=1, gpuModels=["T4"], template=made)
        tenant.wait_reason("first", "Unsatisfiable")
        assert f"needs 1 {nic}" in tenant.status("first")["message"]
        stack.enter_context(contextmanager(served)(tenant.admin, nic, tenant.name, "dra", 1))
        (place,) = tenant.wait_placed("first")
        assert place.node == "dra"
        status = until(lambda: claimed(tenant, "first"), "kube-scheduler has made a claim")
        (mapping,) = status["requestMappings"]
        assert mapping["resourceName"] == nic
        tenant.submit("second", gpu=1, gpuModels=["T4"], template=made)
        until(
            lambda: "cannot allocate all claims" in tenant.status("second").get("message", ""),
            lambda: f"in kube-scheduler's words that none is left; {tenant.status('second')}",
        )
        tenant.remove("first")
        tenant.let_go()
        tenant.wait_placed("second")
        until(lambda: claimed(tenant, "second"), "the next one has it")
        tenant.empty()


def claimed(tenant: Tenant, job: str) -> Json:
    """What a pod of the job has by a claim that kube-scheduler made for it."""
    found = (pod["status"].get("extendedResourceClaimStatus") for pod in tenant.pods(job))
    return next(filter(None, found), {})


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
