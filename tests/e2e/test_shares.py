"""Pods of others with a share of a GPU, in real containers: a label, and nothing else."""

import json
from collections.abc import Iterator

import pytest
from tests.api.tenant import Tenant
from tests.e2e.cuda_jobs import printed
from tests.e2e.share_workloads import (
    asking,
    assert_capped,
    cap_mib,
    described,
    devices,
    serve,
    team,
)
from tests.e2e.waits import until

from cluster import Running

QUARTER = cap_mib(250)


@pytest.fixture(scope="module")
def owner(operated: Running) -> Iterator[Tenant]:
    with team(operated, quota=1, limit=1) as made:
        yield made


def test_four_quarters_on_one_device_each_with_its_own_cap(
    operated: Running, owner: Tenant
) -> None:
    server = serve(owner, "web", 4, asking("0.25"))
    pods = server.wait_running(4)
    (device,) = {allocated.device for pod in pods for allocated in devices(pod)}
    for pod in pods:
        assert_capped(operated, pod, device, QUARTER)
    told = until(lambda: printed(operated, pods[0]), "it has looked at its GPU")
    assert told[0]["totalMiB"] == QUARTER, "the library says so inside"

    server.change(replicas=5)
    (fifth,) = until(server.waiting, "there is a fifth pod")
    until(
        lambda: "WaitingForQuota" in described(operated, fifth),
        lambda: f"kubectl describe says why it waits: {described(operated, fifth)}",
    )
    assert "uses 1 of" in described(operated, fifth) or "limit" in described(operated, fifth)
    owner.set_project(quota=2, limit=2)
    server.wait_running(5)

    owner.set_project(quota=1.25, limit=1.25)
    before = {p["metadata"]["uid"] for p in server.running()}
    server.restart()
    until(
        lambda: (
            len(r := server.running()) == 5
            and not before & {p["metadata"]["uid"] for p in r}
            and len(server.pods()) == 5
        ),
        lambda: f"all were replaced, though nothing was free: {json.dumps(server.pods())}",
    )
    server.change(replicas=0)
    until(lambda: not server.pods(), "scaled to zero")
    until(lambda: owner.project_status().get("allocatedGPU") == "0", "and nothing is held")


def test_a_surge_says_what_it_waits_for(operated: Running, owner: Tenant) -> None:
    owner.set_project(quota=1, limit=1)
    server = serve(owner, "surge", 1, asking("1"), maxSurge=1, maxUnavailable=0)
    server.wait_running(1)
    server.restart()
    (new,) = until(server.waiting, "there is a second pod")
    until(lambda: "WaitingForQuota" in described(operated, new), "it says so")
    assert len(server.running()) == 1, "the old one goes on"
    server.change(replicas=0)
    until(lambda: not server.pods(), "they are gone")
