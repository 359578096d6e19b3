"""Holder pods as the chart installs them: real containers of the operator's own image.

The real node has no device plugin; it advertises ``nvidia.com/gpu`` as a plain extended resource,
so which device a holder is given is not shown here.
"""

from collections.abc import Iterator

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.conftest import install_options
from tests.e2e.gpu_jobs import start
from tests.e2e.metrics import wait_leader
from tests.e2e.waits import until

from cluster import Running
from demo import install

NODE = "/api/v1/nodes/real-0"
PODS = f"/api/v1/namespaces/{install.RELEASE}/pods"


def advertise(admin: Caller, gpus: str | None) -> None:
    resources = {"nvidia.com/gpu": gpus}
    answer = admin.patch(f"{NODE}/status", {"status": {"capacity": resources}})
    assert answer.ok, answer


@pytest.fixture(scope="module")
def operated(real_cluster: Running) -> Running:
    """The chart with holders."""
    install_options(real_cluster)
    return real_cluster


@pytest.fixture
def holding(operated: Running, admin: Caller) -> Iterator[Running]:
    """On a node whose GPUs others may request."""
    advertise(admin, "2")
    yield operated
    advertise(admin, None)


def holders(admin: Caller) -> list[Json]:
    query = "labelSelector=gpu-scheduler.io/component%3Dholder"
    return list(admin.get(f"{PODS}?{query}").body["items"])


def test_a_holder_sleeps_beside_what_it_holds_and_goes_with_it(
    holding: Running, admin: Caller, tenant: Tenant
) -> None:
    wait_leader(holding)
    start(tenant, "half", gpu=0.5)
    (pod,) = until(
        lambda: [p for p in holders(admin) if p["status"].get("phase") == "Running"],
        lambda: f"a holder runs: {[p['status'] for p in holders(admin)]}",
    )
    assert pod["spec"]["nodeName"] == "real-0"
    assert pod["metadata"]["labels"]["gpu-scheduler.io/holds"] in {
        allocated.device for each in tenant.allocations("half") for allocated in each.devices
    }
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Deployment", install.RELEASE)
    start(tenant, "more", gpu=0.3)  # the node is not closed by a pod of ours
    for job in ("half", "more"):
        tenant.remove(job)
    until(lambda: not holders(admin), "it goes when nothing is in use")
