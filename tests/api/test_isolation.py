"""Memory caps as the API server and the Job controller see them: reports, and what follows.

The nodes are fake, so nothing runs in the pods; what an agent would say is written here in its
place.
"""

from collections.abc import Iterator

import pytest
from tests.api.agent import NODE, Agent, condition, here, on_uuid, wait_condition, wait_event
from tests.api.caller import Caller
from tests.api.conftest import administrator
from tests.api.replica import CALM_LEASE, operating
from tests.api.tenant import Json, Tenant, template, until

from cluster import Running

OVER = "container main holds 30000 MiB of GPU-r0-0, its cap is 20224 MiB"


@pytest.fixture(scope="module")
def capped(control_plane: Running) -> Iterator[Running]:
    """An operator that delivers the library."""
    with operating(control_plane, {**CALM_LEASE, "cap_image": "example/gpu-scheduler:1"}):
        yield control_plane


@pytest.fixture
def admin(capped: Running) -> Caller:
    return administrator(capped)


@pytest.fixture
def agent(admin: Caller) -> Iterator[Agent]:
    started = Agent(admin).start()
    yield started
    started.stop()


# --- devices ---


def test_an_unhealthy_device_takes_no_pods_and_its_holders_are_told(
    tenant: Tenant, agent: Agent
) -> None:
    tenant.submit("holder", gpu=0.5, template=here())
    ((allocated,),) = (a.devices for a in tenant.wait_placed("holder"))
    tenant.wait_phase("holder", "Running")
    sick = int(allocated.device.removeprefix("GPU-r0-"))
    agent.troubles = {sick: {"healthy": False, "message": "XID 79: fallen off the bus"}}
    agent.report()
    told = wait_condition(tenant, "holder", "DevicesHealthy", "False")
    assert f"{allocated.device} of {NODE} is unhealthy: XID 79" in told["message"]
    assert "XID 79" in wait_event(tenant, "holder", "DeviceUnhealthy")
    tenant.submit("next", gpu=0.5, template=here())
    ((other,),) = (a.devices for a in tenant.wait_placed("next"))
    assert other.device == f"GPU-r0-{1 - sick}"
    tenant.submit("two", gpu=2, template=here())
    assert "XID 79" in tenant.wait_reason("two", "WaitingForGPU")
    assert tenant.status("holder")["phase"] == "Running"
    agent.troubles = {}
    agent.report()
    wait_condition(tenant, "holder", "DevicesHealthy", "True")


def test_a_device_that_is_used_past_us_takes_no_pods(tenant: Tenant, agent: Agent) -> None:
    stranger = {"foreignProcesses": [{"pid": 4711, "name": "python", "usedMiB": 3000}]}
    agent.troubles = {0: stranger, 1: stranger}
    agent.report()
    until(lambda: any_event(agent.admin, "ForeignProcesses"), "an Event on the GPUNode")
    tenant.submit("late", gpu=0.5, template=here())
    assert "python (pid 4711)" in tenant.wait_reason("late", "WaitingForGPU")
    agent.troubles = {}
    agent.report()
    tenant.wait_placed("late")


def any_event(admin: Caller, reason: str) -> list[Json]:
    """Events on cluster-scoped objects."""
    found = admin.get("/api/v1/namespaces/default/events").body["items"]
    return [e for e in found if e["involvedObject"]["name"] == NODE and e["reason"] == reason]


# --- the self-test ---


def test_a_node_whose_self_test_failed_keeps_what_runs_and_takes_no_more_that_need_the_level(
    tenant: Tenant, agent: Agent
) -> None:
    before = running_pod(tenant, "before")
    agent.failed = ["interposer"]
    agent.report()
    tenant.submit("late", gpu=0.3, template=here())
    message = tenant.wait_reason("late", "WaitingForResources")
    assert f"1 node ({NODE}) failed the self-test of isolation: interposer" in message
    assert "isolation: framework, or whole GPUs, do without" in message
    tenant.submit("framework", gpu=0.2, isolation="framework", template=here())
    tenant.submit("whole", gpu=1, template=here())
    tenant.wait_placed("framework")
    tenant.wait_placed("whole")
    (after,) = tenant.pods("before")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["phase"] == "Running"
    agent.failed = []
    agent.report()
    tenant.wait_placed("late")


# --- the agent's sign of life ---


def test_when_the_agents_lease_runs_out_no_new_pods_come_and_running_ones_stay(
    tenant: Tenant, agent: Agent
) -> None:
    agent.beat(seconds=600)
    tenant.submit("first", gpu=0.5, template=here())
    tenant.wait_placed("first")
    tenant.wait_phase("first", "Running")
    (before,) = tenant.pods("first")
    agent.sees(before)
    wait_condition(tenant, "first", "Protected", "True")
    agent.beat(seconds=2)
    until(lambda: not condition(tenant, "first", "Protected"), "its old report counts no more")
    tenant.submit("second", gpu=0.5, template=here())
    message = tenant.wait_reason("second", "WaitingForResources")
    assert f"{NODE} has an agent that has not reported for 2 s (Lease gpu-node-{NODE})" in message
    (after,) = tenant.pods("first")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["phase"] == "Running"
    agent.beat(seconds=600)
    tenant.wait_placed("second")


# --- reports on containers ---


def running_pod(tenant: Tenant, job: str) -> Json:
    tenant.submit(job, gpu=0.5, retries=0, template=here())
    tenant.wait_placed(job)
    tenant.wait_phase(job, "Running")
    assert on_uuid(tenant, job)
    (pod,) = tenant.pods(job)
    return pod


def test_the_status_shows_what_enforces_the_cap(tenant: Tenant, agent: Agent) -> None:
    pod = running_pod(tenant, "shown")
    assert "isolation" not in tenant.status("shown")["placements"][0]
    agent.sees(pod)
    wait_condition(tenant, "shown", "Protected", "True")
    assert tenant.status("shown")["placements"][0]["isolation"] == "interposer"
    agent.sees(pod, "unprotected", message="process 7 (python) runs without libgpucap")
    told = wait_condition(tenant, "shown", "Protected", "False")
    assert told["reason"] == "Unprotected" and "process 7 (python)" in told["message"]
    assert tenant.status("shown")["placements"][0]["isolation"] == "unprotected"
    assert "process 7 (python)" in wait_event(tenant, "shown", "Unprotected")


def test_under_policy_warn_a_pod_above_its_cap_stays(tenant: Tenant, agent: Agent) -> None:
    tenant.set_project(overCapPolicy="warn")
    pod = running_pod(tenant, "warned")
    agent.sees(pod, overCapSince="2026-01-01T00:00:00Z", message=OVER)
    told = wait_condition(tenant, "warned", "Protected", "False")
    assert told["reason"] == "OverCap" and OVER in told["message"]
    assert OVER in wait_event(tenant, "warned", "OverCap")
    (after,) = tenant.pods("warned")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]


def test_under_policy_evict_it_goes_without_a_retry_charged(tenant: Tenant, agent: Agent) -> None:
    tenant.set_project(overCapPolicy="evict")
    agent.live()
    neighbour = running_pod(tenant, "neighbour")
    pod = running_pod(tenant, "greedy")
    agent.sees(pod, overCapSince="2026-01-01T00:00:00Z", message=OVER)
    until(
        lambda: any(p["metadata"]["uid"] != pod["metadata"]["uid"] for p in tenant.pods("greedy")),
        "there is another pod in its place",
    )
    message = wait_event(tenant, "greedy", "OverCapEvicted")
    assert "policy evict" in message and OVER in message
    agent.containers = []
    agent.report()
    until(
        lambda: (
            [p["metadata"]["uid"] for p in tenant.pods("greedy")] != [pod["metadata"]["uid"]]
            and len(tenant.pods("greedy")) == 1
        ),
        "the old pod is gone",
    )
    tenant.wait_phase("greedy", "Running")
    status = tenant.batch_job("greedy")["status"]
    assert (status.get("failed", 0), status.get("failedIndexes", "")) == (0, "")
    (left,) = tenant.pods("neighbour")
    assert left["metadata"]["uid"] == neighbour["metadata"]["uid"]


def test_a_report_without_a_living_agent_evicts_nobody(tenant: Tenant, agent: Agent) -> None:
    tenant.set_project(overCapPolicy="evict")
    pod = running_pod(tenant, "left")
    agent.sees(pod, overCapSince="2026-01-01T00:00:00Z", message=OVER)
    wait_condition(tenant, "left", "Protected", "False")
    evicted_elsewhere(tenant)  # so the operator has looked at all pods above their caps
    (after,) = tenant.pods("left")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]
    agent.live()
    wait_event(tenant, "left", "OverCapEvicted")


def evicted_elsewhere(tenant: Tenant) -> None:
    """Have a pod of another node evicted for being above its cap: its agent lives."""
    other = Agent(tenant.admin, "r7525-1").start()
    try:
        other.live()
        there = template(nodeSelector={"kubernetes.io/hostname": other.node})
        tenant.submit("elsewhere", gpu=0.5, template=there)
        tenant.wait_phase("elsewhere", "Running")
        (pod,) = tenant.pods("elsewhere")
        other.sees(pod, overCapSince="2026-01-01T00:00:00Z", message=OVER)
        uid = pod["metadata"]["uid"]
        until(
            lambda: uid not in {each["metadata"]["uid"] for each in tenant.pods("elsewhere")},
            "it is gone",
        )
    finally:
        other.stop()


def test_an_agent_cannot_have_pods_of_other_nodes_evicted(tenant: Tenant, agent: Agent) -> None:
    tenant.set_project(overCapPolicy="evict")
    agent.live()
    tenant.submit(
        "elsewhere", gpu=0.5, template=template(nodeSelector={"kubernetes.io/hostname": "r7525-1"})
    )
    tenant.wait_placed("elsewhere")
    tenant.wait_phase("elsewhere", "Running")
    (victim,) = tenant.pods("elsewhere")
    agent.sees(victim, overCapSince="2026-01-01T00:00:00Z", message=OVER)
    own = running_pod(tenant, "here")
    agent.containers.append(
        {**agent.containers[0], "pod": own["metadata"]["name"], "uid": own["metadata"]["uid"]}
    )
    agent.report()
    wait_event(tenant, "here", "OverCapEvicted")  # so the report was looked at
    (after,) = tenant.pods("elsewhere")
    assert after["metadata"]["uid"] == victim["metadata"]["uid"]
    assert not condition(tenant, "elsewhere", "Protected")
