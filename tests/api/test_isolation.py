"""Memory caps as the API server and the Job controller see them: delivery, reports, what follows.

The nodes are fake, so nothing runs in the pods; what an agent would say is written here in its
place.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.api.caller import Answer, Caller
from tests.api.conftest import administrator, own_cluster
from tests.api.replica import LEASE_NAMESPACE, Replica
from tests.api.tenant import GROUP, Json, Tenant, template, until

from cluster import Running

NODE = "r7525-0"
IMAGE = "example/gpu-scheduler:1"
LIBRARY = "gpu-scheduler-cap"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
OVER = "container main holds 30000 MiB of GPU-r0-0, its cap is 20224 MiB"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture(scope="module")
def capped() -> Iterator[Running]:
    """A cluster whose operator delivers the library."""
    with own_cluster("caps") as running:
        replica = Replica(running, settings={"cap_image": IMAGE}).start()
        try:
            replica.wait_leading()
            yield running
        finally:
            replica.stop()


@pytest.fixture
def admin(capped: Running) -> Caller:
    return administrator(capped)


@dataclass(slots=True)
class Agent:
    """Writes what the agent of one node would."""

    admin: Caller
    node: str = NODE
    troubles: dict[int, Json] = field(default_factory=dict)  # by device
    containers: list[Json] = field(default_factory=list)

    def start(self) -> "Agent":
        body = {"apiVersion": "gpu-scheduler.io/v1alpha1", "kind": "GPUNode"}
        assert self.admin.create(f"{GROUP}/gpunodes", {**body, "metadata": {"name": self.node}}).ok
        self.report()
        return self

    def report(self) -> None:
        devices = [
            {
                "uuid": f"GPU-r0-{i}",
                "index": i,
                "model": "NVIDIA A100-PCIE-40GB",
                "memoryMiB": 40960,
                "usableMiB": 40448,
                "computeCapability": "8.0",
                "healthy": True,
                **self.troubles.get(i, {}),
            }
            for i in range(2)
        ]
        status = {"isolation": "interposer", "devices": devices, "containers": self.containers}
        path = f"{GROUP}/gpunodes/{self.node}/status"
        answer = self.admin.patch(path, {"status": status})
        assert answer.ok, answer

    def sees(self, pod: Json, isolation: str = "interposer", **more: Any) -> None:
        """Report this pod's container, and no other."""
        meta = pod["metadata"]
        entry = {"namespace": meta["namespace"], "pod": meta["name"], "uid": meta["uid"]}
        self.containers = [{**entry, "container": 0, "isolation": isolation, **more}]
        self.report()

    def beat(self, seconds: int) -> None:
        """Renew the Lease: it lives so long from now."""
        name = f"gpu-node-{self.node}"
        spec = {
            "holderIdentity": self.node,
            "leaseDurationSeconds": seconds,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        labels = {"gpu-scheduler.io/component": "agent"}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }
        answer = self.admin.create(LEASES, body)
        if answer.status == 409:
            answer = self.admin.patch(f"{LEASES}/{name}", {"spec": spec})
        assert answer.ok, answer

    def live(self) -> None:
        """Be seen to be alive: a Lease that is renewed."""
        self.beat(seconds=600)
        self.beat(seconds=600)

    def stop(self) -> None:
        self.admin.send("DELETE", f"{LEASES}/gpu-node-{self.node}")
        self.admin.send("DELETE", f"{GROUP}/gpunodes/{self.node}")


@pytest.fixture
def agent(admin: Caller) -> Iterator[Agent]:
    started = Agent(admin).start()
    yield started
    started.stop()


def here(**container: Any) -> Json:
    """A template for the agent's node."""
    made = template(nodeSelector={"kubernetes.io/hostname": NODE})
    made["spec"]["containers"][0] |= container
    return made


def on_uuid(tenant: Tenant, job: str) -> bool:
    """Whether the job's pods were placed on devices that the agent named."""
    return all(g.device.startswith("GPU-r0-") for a in tenant.allocations(job) for g in a.grants)


def condition(tenant: Tenant, job: str, kind: str) -> Json:
    found = tenant.status(job).get("conditions", ())
    return next((c for c in found if c["type"] == kind), {})


def wait_condition(tenant: Tenant, job: str, kind: str, status: str) -> Json:
    return until(
        lambda: (c := condition(tenant, job, kind)).get("status") == status and c,
        lambda: f"{kind} of {job} is {status}; {tenant.status(job)}",
    )


def wait_event(tenant: Tenant, job: str, reason: str) -> str:
    events = until(
        lambda: [e for e in tenant.events(job) if e["reason"] == reason],
        lambda: f"an Event {reason}; {[e['reason'] for e in tenant.events(job)]}",
    )
    assert len(events) == 1 and events[0]["type"] == "Warning"
    return str(events[0]["message"])


# --- delivery ---


def label_namespace(tenant: Tenant, **labels: str) -> Answer:
    path = f"/api/v1/namespaces/{tenant.name}"
    named = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
    return tenant.admin.patch(path, {"metadata": {"labels": named}})


def test_the_restricted_pod_security_level_accepts_what_is_rendered(tenant: Tenant) -> None:
    assert label_namespace(tenant, enforce="restricted").ok
    tenant.submit("careless", gpu=0.5, template=here())
    # At first the operator may not know the project yet, which is Invalid as well.
    until(
        lambda: "violates PodSecurity" in tenant.status("careless").get("message", ""),
        lambda: f"the level is named; status {tenant.status('careless')}",
    )
    tenant.submit("careful", gpu=0.5, template=here(securityContext=RESTRICTED))
    tenant.wait_placed("careful")
    (pod,) = tenant.pods("careful")
    assert [c["name"] for c in pod["spec"]["initContainers"]] == [LIBRARY]
    assert pod["spec"]["initContainers"][0]["image"] == IMAGE
    paths = {m["mountPath"] for m in pod["spec"]["containers"][0]["volumeMounts"]}
    assert {"/etc/ld.so.preload", "/opt/gpu-scheduler/lib", "/opt/gpu-scheduler/state"} <= paths
    tenant.wait_phase("careful", "Running")


def test_a_pod_run_as_root_gets_the_library_from_a_container_that_is_not(tenant: Tenant) -> None:
    made = here()
    made["spec"]["securityContext"] = {"runAsUser": 0}
    tenant.submit("root", gpu=0.5, template=made)
    tenant.wait_placed("root")
    (pod,) = tenant.pods("root")
    assert pod["spec"]["initContainers"][0]["securityContext"]["runAsUser"] == 65532


def test_quotas_and_the_quality_of_service_do_not_notice(tenant: Tenant) -> None:
    path = f"/api/v1/namespaces/{tenant.name}/resourcequotas"
    hard = {
        "requests.cpu": "1",
        "limits.cpu": "1",
        "requests.memory": "1Gi",
        "limits.memory": "1Gi",
    }
    assert tenant.admin.create(path, {"metadata": {"name": "all"}, "spec": {"hard": hard}}).ok
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    tenant.submit("exact", gpu=0.5, template=here(resources=resources))
    tenant.wait_placed("exact")
    (pod,) = tenant.pods("exact")
    assert pod["status"]["qosClass"] == "Guaranteed"
    used = until(
        lambda: tenant.admin.get(f"{path}/all").body["status"].get("used"), "the quota is counted"
    )
    assert used["requests.cpu"] == "1"


def test_a_job_can_do_without(tenant: Tenant) -> None:
    tenant.submit("plain", gpu=0.5, isolation="framework", template=here())
    tenant.wait_placed("plain")
    (pod,) = tenant.pods("plain")
    assert "initContainers" not in pod["spec"]
    assert LIBRARY not in str(pod["spec"]) and "ld.so.preload" not in str(pod["spec"])
    answer = tenant.patch("plain", isolation="interposer")
    assert answer.status == 422 and "isolation cannot be changed" in answer.message


def test_an_installation_can_do_without(scheduled: Running) -> None:
    """The other clusters' operator has no image with the library."""
    tenant = Tenant(administrator(scheduled)).create(quota=8)
    try:
        tenant.submit("plain", gpu=0.5)
        tenant.wait_placed("plain")
        assert LIBRARY not in str(tenant.pods("plain"))
        tenant.submit("wants", gpu=0.5, isolation="interposer")
        assert "spec.isolation" in tenant.wait_reason("wants", "Invalid")
    finally:
        tenant.delete()


def test_a_preload_file_of_ones_own_is_refused_with_the_way_out(tenant: Tenant) -> None:
    mount = {"name": "mine", "mountPath": "/etc/ld.so.preload", "subPath": "x"}
    made = here(volumeMounts=[mount])
    made["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
    tenant.submit("own", gpu=0.5, template=made)
    message = tenant.wait_reason("own", "Invalid")
    assert "containers[0].volumeMounts[0].mountPath" in message
    assert "spec.isolation: framework" in message
    tenant.submit("way-out", gpu=0.5, template=made, isolation="framework")
    tenant.wait_placed("way-out")


# --- devices ---


def test_an_unhealthy_device_takes_no_pods_and_its_holders_are_told(
    tenant: Tenant, agent: Agent
) -> None:
    tenant.submit("holder", gpu=0.5, template=here())
    ((grant,),) = (a.grants for a in tenant.wait_placed("holder"))
    tenant.wait_phase("holder", "Running")
    sick = int(grant.device.removeprefix("GPU-r0-"))
    agent.troubles = {sick: {"healthy": False, "message": "XID 79: fallen off the bus"}}
    agent.report()
    told = wait_condition(tenant, "holder", "DevicesHealthy", "False")
    assert f"{grant.device} of {NODE} is unhealthy: XID 79" in told["message"]
    assert "XID 79" in wait_event(tenant, "holder", "DeviceUnhealthy")
    tenant.submit("next", gpu=0.5, template=here())
    ((other,),) = (a.grants for a in tenant.wait_placed("next"))
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


# --- the agent's sign of life ---


def test_when_the_agents_lease_runs_out_no_new_pods_come_and_running_ones_stay(
    tenant: Tenant, agent: Agent
) -> None:
    agent.beat(seconds=60)
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
    agent.beat(seconds=60)
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
    time.sleep(3)  # the operator looks once a second
    (after,) = tenant.pods("left")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert "deletionTimestamp" not in after["metadata"]
    agent.live()
    wait_event(tenant, "left", "OverCapEvicted")


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
