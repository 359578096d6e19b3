"""The agent of the real node: its devices, their troubles, and its own end."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant
from tests.e2e.gpu_jobs import FIRST, SECOND, USABLE_MIB, start
from tests.e2e.waits import TIMEOUT, until

from cluster import Running, real_node
from cluster.credentials import REAL_NODE_NAME

GPUNODE = f"/apis/gpu-scheduler.io/v1alpha1/gpunodes/{REAL_NODE_NAME}"
DAEMON_SET = "gpu-scheduler-agent"
NAMESPACE = "gpu-scheduler"


def devices(admin: Caller) -> dict[str, Json]:
    return {d["uuid"]: d for d in admin.get(GPUNODE).body["status"]["devices"]}


def condition(tenant: Tenant, job: str, kind: str) -> Json:
    found = (c for c in tenant.status(job).get("conditions", ()) if c["type"] == kind)
    return next(found, {})


def restart(cluster: Running) -> None:
    """The agent anew: what an XID did to a device is forgotten, as after a reset."""
    cluster.kubectl("rollout", "restart", f"daemonset/{DAEMON_SET}", "-n", NAMESPACE)
    cluster.kubectl("rollout", "status", f"daemonset/{DAEMON_SET}", "-n", NAMESPACE, TIMEOUT)


@pytest.fixture
def broken(operated: Running, admin: Caller) -> Iterator[Callable[..., None]]:
    """Breaks a device; afterwards all are well again."""
    driver = real_node.driver(operated)
    done: set[object] = set()

    def control(*words: object) -> None:
        driver.control(*words)
        done.add(words[0])

    yield control
    for uuid in (FIRST, SECOND):
        driver.control("set", uuid, "lost", 0)
    if "xid" in done:
        restart(operated)
    until(lambda: all(d["healthy"] for d in devices(admin).values()), "all devices are well")


def test_it_says_which_devices_the_node_has_and_what_its_self_test_saw(admin: Caller) -> None:
    status = admin.get(GPUNODE).body["status"]
    assert list(devices(admin)) == [FIRST, SECOND]
    assert {d["usableMiB"] for d in status["devices"]} == {USABLE_MIB}
    assert status["isolation"] == "interposer"
    assert "interposer" in status["selfTest"]
    assert "failedIsolation" not in status
    (owner,) = admin.get(GPUNODE).body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Node", REAL_NODE_NAME)


def test_its_gpunode_comes_back_when_somebody_overwrites_or_deletes_it(admin: Caller) -> None:
    before = devices(admin)
    assert admin.patch(f"{GPUNODE}/status", {"status": {"devices": []}}).ok
    until(lambda: devices(admin) == before, "its status is as it was")
    assert admin.send("DELETE", GPUNODE).ok
    until(
        lambda: (found := admin.get(GPUNODE)).ok and found.body.get("status", {}).get("devices"),
        "it is there again",
    )
    assert devices(admin) == before
    assert admin.get(GPUNODE).body["metadata"]["ownerReferences"][0]["name"] == REAL_NODE_NAME


@pytest.mark.parametrize("trouble", [("xid", 79), ("lost", 1)], ids=["an XID", "a lost device"])
def test_a_broken_device_is_unhealthy_in_ten_seconds_and_takes_no_new_pods(
    admin: Caller, tenant: Tenant, broken: Callable[..., None], trouble: tuple[str, int]
) -> None:
    held = start(tenant, "holder", gpu=0.5)
    (device,) = [g.device for g in tenant.allocations("holder")[0].devices]
    if trouble[0] == "xid":
        broken("xid", device, trouble[1])
    else:
        broken("set", device, *trouble)
    until(lambda: not devices(admin)[device]["healthy"], "the device is unhealthy")
    until(
        lambda: condition(tenant, "holder", "DevicesHealthy").get("status") == "False",
        lambda: f"the job is told; {json.dumps(tenant.status('holder'))}",
    )
    assert device in condition(tenant, "holder", "DevicesHealthy")["message"]
    start(tenant, "later", gpu=0.3)
    assert [g.device for g in tenant.allocations("later")[0].devices] != [device]
    (same,) = tenant.pods("holder")
    assert same["metadata"]["uid"] == held["metadata"]["uid"]


def test_when_it_stops_its_devices_take_no_new_pods_and_those_that_run_go_on(
    operated: Running, admin: Caller, tenant: Tenant
) -> None:
    held = start(tenant, "holder", gpu=0.5)
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{DAEMON_SET}"
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"nobody": "has-this"}}}}}
    assert admin.patch(path, nowhere).ok
    try:
        until(lambda: not agents(admin), "the agent is gone")
        tenant.submit("whole", gpu=2)  # for which there is no room anyway
        end_lease(admin)
        told_of_silence(tenant, "whole")
        tenant.remove("whole")
        tenant.submit("waits", gpu=0.3)
        told_of_silence(tenant, "waits")
        assert not tenant.allocations("waits")
        (same,) = tenant.pods("holder")
        assert same["metadata"]["uid"] == held["metadata"]["uid"]
        assert same["status"]["phase"] == "Running"
    finally:
        back = {"spec": {"template": {"spec": {"nodeSelector": {"nobody": None}}}}}
        assert admin.patch(path, back).ok
    tenant.wait_placed("waits")


def test_the_node_keeps_who_used_its_gpus_over_a_restart_of_the_agent(
    operated: Running, tenant: Tenant
) -> None:
    """And what of the node, whichever version its cgroups have."""
    held = start(tenant, "holder", gpu=0.5)
    name = held["metadata"]["name"]
    first = until(lambda: ring(operated, name, "busy"), "its GPU is seen")
    assert (first["namespace"], first["job"], first["device"]) == (
        *(tenant.name, "holder"),
        tenant.allocations("holder")[0].devices[0].device,
    )
    until(lambda: ring(operated, name, "memoryMiB")["memoryMiB"], "its program has allocated")
    restart(operated)
    again = until(lambda: ring(operated, name, "busy"), "it is seen again")
    assert again["seenFor"] >= first["seenFor"]
    tenant.remove("holder")
    until(lambda: ring(operated, name, "busy")["endedFor"] is not None, "it has ended")


def ring(cluster: Running, pod: str, known: str) -> Json:
    """What the node has kept of a pod, once a figure is known; empty until then."""
    command = ("python3", "-m", "gpu_scheduler.main", "agent", "history", "--json")
    on = f"daemonset/{DAEMON_SET}"
    said = cluster.kubectl("exec", "-n", NAMESPACE, on, "-c", "agent", "--", *command, check=False)
    rows = json.loads(said.stdout) if said.returncode == 0 else []
    return next((row for row in rows if row["pod"] == pod and row.get(known) is not None), {})


def told_of_silence(tenant: Tenant, job: str) -> None:
    until(
        lambda: "has not reported" in tenant.status(job).get("message", ""),
        lambda: f"{job} says why it waits; {json.dumps(tenant.status(job))}",
    )


def end_lease(admin: Caller) -> None:
    """Let the Lease of an agent that is gone run out at once, which takes a while otherwise."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/gpu-node-{REAL_NODE_NAME}"
    last = {"leaseDurationSeconds": 1, "renewTime": datetime.now(UTC).isoformat()}
    answer = admin.patch(path, {"spec": last})
    assert answer.ok, answer


def agents(admin: Caller) -> list[Json]:
    query = "labelSelector=app.kubernetes.io/name%3Dgpu-scheduler-agent"
    found: list[Json] = admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods?{query}").body["items"]
    return found
