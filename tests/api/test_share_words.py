"""What the operator tells of pods that ask for a share by themselves: Events, conditions, names."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.agent import NODE, Agent, wait_event
from tests.api.site import Site, Team
from tests.api.tenant import Json, Tenant, held, until
from tests.api.test_shares import (
    SETTINGS as SETTINGS,  # of the fixture `site`
)
from tests.api.test_shares import (
    Web,
    allocation,
    make_pod,
    running,
    template,
    wait_running,
    wait_told,
)
from tests.api.test_simulate import Simulator

from gpu_scheduler.api.names import GATE, SCHEDULER_NAME


def wait_runs(tenant: Tenant, name: str) -> Json:
    """Until a pod runs and holds its share; the pod."""
    return until(
        lambda: next((p for p in running(tenant.pods()) if p["metadata"]["name"] == name), None),
        lambda: f"{name} runs: {json.dumps(tenant.pods())}",
    )


# --- Scheduled ---


def test_a_bound_pod_has_an_event_that_says_where_it_went_and_what_it_got(team: Team) -> None:
    tenant = team(quota=8)
    web = Web(tenant).create(3, "0.5")
    pods = wait_running(web, 3)
    tenant.submit("job", gpu=0.5)
    tenant.wait_placed("job")
    for pod in pods:
        name, got = pod["metadata"]["name"], allocation(pod)
        assert got is not None
        (allocated,) = got.devices
        event = tenant.wait_event(name, "Scheduled")
        assert (event["type"], event["count"]) == ("Normal", 1)
        assert event["involvedObject"]["uid"] == pod["metadata"]["uid"]
        assert event["message"] == (
            f"Successfully assigned {tenant.name}/{name} to {got.node}: "
            f"0.5 of device {allocated.device} ({allocated.mib} MiB)"
        )
    (job,) = tenant.pods("job")
    tenant.wait_phase("job", "Running")
    (last,) = wait_running(Web(tenant, "later").create(1, "0.5"), 1)
    tenant.wait_event(last["metadata"]["name"], "Scheduled")
    assert not tenant.events(job["metadata"]["name"]), "what came before it would be there by now"


def test_of_a_pod_behind_the_gate_kube_scheduler_says_it_and_nobody_else(team: Team) -> None:
    tenant = team(quota=8)
    make_pod(tenant, "notebook", template("0.5", controlled=False))
    wait_runs(tenant, "notebook")
    (later,) = wait_running(Web(tenant).create(1, "0.5"), 1)
    tenant.wait_event(later["metadata"]["name"], "Scheduled")
    event = tenant.wait_event("notebook", "Scheduled")
    assert event["reportingComponent"] == "default-scheduler"
    assert [e["reason"] for e in tenant.events("notebook")].count("Scheduled") == 1


# --- what agents warn of ---

OVER = "container main holds 30000 MiB of GPU-r0-0, its cap is 20224 MiB"
PROTECTED, HEALTHY = "gpu-scheduler.io/Protected", "gpu-scheduler.io/DevicesHealthy"


@pytest.fixture
def agent(site: Site) -> Iterator[Agent]:
    started = Agent(site.admin).start()
    yield started
    started.stop()


def on_the_agents_node(tenant: Tenant) -> Json:
    """A pod that runs there."""
    made = template("0.5")
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    make_pod(tenant, "server", made)
    return wait_runs(tenant, "server")


def warning(tenant: Tenant, pod: Json, kind: str) -> Json:
    """A condition of this type on this pod; empty where there is none."""
    now = next(p for p in tenant.pods() if p["metadata"]["uid"] == pod["metadata"]["uid"])
    found = (c for c in now["status"].get("conditions", ()) if c["type"] == kind)
    return next(found, {})


def test_a_pod_above_its_cap_says_so_until_it_is_over(team: Team, agent: Agent) -> None:
    tenant = team(quota=8, overCapPolicy="warn")
    pod = on_the_agents_node(tenant)
    name, others = pod["metadata"]["name"], pod["status"]["conditions"]
    agent.sees(pod, overCapSince="2026-01-01T00:00:00Z", message=OVER)
    told = until(lambda: warning(tenant, pod, PROTECTED), "it says so")
    assert (told["status"], told["reason"]) == ("False", "OverCap")
    assert OVER in told["message"]
    assert OVER in wait_event(tenant, name, "OverCap")
    agent.sees(pod)
    until(lambda: not warning(tenant, pod, PROTECTED), "it is over")
    for each in others:
        assert warning(tenant, pod, each["type"]) == each, "all others are as they were"


def test_a_pod_whose_library_is_not_in_force_or_whose_device_falls_ill_says_so(
    team: Team, agent: Agent
) -> None:
    tenant = team(quota=8)
    pod = on_the_agents_node(tenant)
    got = allocation(pod)
    assert got is not None
    agent.sees(pod, "unprotected", message="container main runs without the library")
    until(lambda: warning(tenant, pod, PROTECTED).get("reason") == "Unprotected", "it says so")
    device = int(got.devices[0].device.removeprefix("GPU-r0-"))
    agent.troubles = {device: {"healthy": False, "message": "XID 79"}}
    agent.report()
    told = until(lambda: warning(tenant, pod, HEALTHY), "it says that, too")
    assert "XID 79" in told["message"]
    assert "XID 79" in wait_event(tenant, pod["metadata"]["name"], "DeviceUnhealthy")
    assert warning(tenant, pod, PROTECTED)["reason"] == "Unprotected"
    agent.troubles = {}
    agent.sees(pod)
    until(
        lambda: not warning(tenant, pod, PROTECTED) and not warning(tenant, pod, HEALTHY),
        "all is well again",
    )


# --- names ---


def test_who_holds_what_a_pod_waits_for_is_called_by_who_made_it(team: Team) -> None:
    tenant = team(quota=8, limit=8)
    wait_running(Web(tenant).create(7, "1"), 7)
    make_pod(tenant, "notebook", template("1", controlled=False))
    wait_runs(tenant, "notebook")
    late = Web(tenant, "late").create(1, "1")
    (waiting,) = until(late.pods, "its controller made it")
    told = wait_told(tenant, waiting["metadata"]["name"], "held by")["message"]
    assert f"{tenant.name}/deployment web" in told and f"{tenant.name}/pod notebook" in told
    assert told.count("deployment web") == 1 and "web-" not in told


# --- what is counted, and what a simulation sees ---


def test_the_project_counts_what_runs_waits_and_is_borrowed(team: Team) -> None:
    tenant = team(quota=1, limit=2)
    wait_running(Web(tenant).create(5, "0.5"), 4)
    status = until(
        lambda: (s := tenant.project_status()).get("jobs") == {"running": 4, "pending": 1} and s,
        lambda: f"four run, one waits: {tenant.project_status()}",
    )
    assert (status["allocatedGPU"], status["borrowedGPU"], status["pendingGPU"]) == (
        "2",
        "1",
        "0.5",
    )


def test_a_simulation_sees_those_that_run_and_those_that_wait(
    site: Site, team: Team, tmp_path: Path
) -> None:
    tenant = team(quota=8)
    wait_running(Web(tenant).create(6, "1"), 6)
    Web(tenant, "late").create(2, "2")
    simulate = Simulator(site.running, tmp_path)
    until(lambda: held(tenant) == 8, lambda: f"one of them fits: {tenant.project_status()}")
    said = simulate.json()
    mine = [each for each in said["projects"] if each["name"] == tenant.name]
    assert [(each["allocatedBefore"], each["allocatedAfter"]) for each in mine] == [("8", "8")]
    (wait,) = (each for each in said["waits"] if each["project"] == tenant.name)
    assert wait["reason"] in ("WaitingForGPU", "WaitingForQuota")
    more = simulate.json("--remove", "node/r7525-0")
    again = [each["pod"] for each in more["starts"] if each["project"] == tenant.name]
    assert again == [], "nothing is free elsewhere"
    assert len([each for each in more["waits"] if each["project"] == tenant.name]) > 1


# --- pods that wait for us, and ask for nothing ---


@pytest.mark.parametrize(
    "spec", [{"schedulerName": SCHEDULER_NAME}, {"schedulingGates": [{"name": GATE}]}]
)
def test_a_pod_that_names_us_and_asks_for_nothing_is_told_the_way_out(
    team: Team, spec: Json
) -> None:
    tenant = team(quota=1)
    containers = [{"name": "main", "image": "x"}]
    body = {"metadata": {}, "spec": {"containers": containers, **spec}}
    make_pod(tenant, "stray", body)
    event = tenant.wait_event("stray", "Invalid")
    assert "asks for no share of a GPU: make it anew with the label" in event["message"]
    (pod,) = tenant.pods()
    (told,) = (c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    assert (told["status"], told["reason"]) == ("False", "Invalid")
    path = f"/api/v1/namespaces/{tenant.name}/pods/stray"
    assert tenant.admin.send("DELETE", path).ok  # nobody else would
