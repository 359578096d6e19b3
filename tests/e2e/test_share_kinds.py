"""Whatever makes the pods: each kind of workload gets its shares, in real containers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.api.tenant import Json, Tenant, held
from tests.api.test_shares import unscheduled
from tests.e2e.cuda_jobs import WATCHER, python
from tests.e2e.gpu_jobs import UNTIL_TOLD, container, devices_there, environment, let_end, template
from tests.e2e.share_workloads import (
    CRON_JOBS,
    DAEMON_SETS,
    STATEFUL_SETS,
    Workload,
    asking,
    assert_capped,
    cap_mib,
    described,
    devices,
    make_pod,
    pod_named,
    remove_pod,
    team,
    wait_phase,
)
from tests.e2e.waits import until

from cluster import Running
from cluster.credentials import REAL_NODE_NAME
from gpu_scheduler.api.names import ASK_PRIORITY, RESOURCE_MIB


@pytest.fixture(scope="module")
def owner(operated: Running) -> Iterator[Tenant]:
    with team(operated, quota=2) as made:
        yield made


@pytest.fixture
def nightly(owner: Tenant) -> Workload:
    """A CronJob that is due: it was held back when its turn came, some minutes ago."""
    cron = Workload(owner, "nightly", CRON_JOBS)
    ends = asking("0.5", template(container(UNTIL_TOLD), restartPolicy="Never"))
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    ignored = {"action": "Ignore", "onPodConditions": [disrupted]}
    job = {"template": cron.labelled(ends), "podFailurePolicy": {"rules": [ignored]}}
    spec = {"schedule": "* * * * *", "suspend": True, "concurrencyPolicy": "Forbid"}
    cron.make({**spec, "jobTemplate": {"spec": job}})
    before = datetime.now(UTC) - timedelta(minutes=3)
    cron.change_status(lastScheduleTime=before.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return cron


@pytest.fixture
def notebook(owner: Tenant) -> Iterator[Json]:
    """A running pod that nobody would make again; it asks in its limits."""
    made = python(WATCHER)
    made["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE_MIB: 4096, "cpu": "100m"}}
    make_pod(owner, "notebook", made)
    yield wait_phase(owner, "notebook", "Running")
    remove_pod(owner, "notebook")


def test_a_bare_pod_goes_through_the_gate_and_kube_scheduler(
    operated: Running, notebook: Json
) -> None:
    assert "schedulingGates" not in notebook["spec"]
    assert notebook["spec"]["schedulerName"] == "default-scheduler"
    until(
        lambda: "Successfully assigned" in described(operated, notebook),
        lambda: f"kube-scheduler says so: {described(operated, notebook)}",
    )
    resources = notebook["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "100m"}, "what no node has is taken out"
    (allocated,) = devices(notebook)
    assert_capped(operated, notebook, allocated.device, 4096)


def test_a_stateful_set_starts_in_order_and_its_second_pod_waits_for_room(
    operated: Running, owner: Tenant, notebook: Json
) -> None:
    (taken,) = devices(notebook)
    shards = Workload(owner, "shard", STATEFUL_SETS)
    shards.create(asking("1"), replicas=2, serviceName="shard")
    (second,) = until(
        lambda: [p for p in shards.waiting() if p["metadata"]["name"] == "shard-1"],
        "the first one is ready, and there is a second",
    )
    until(
        lambda: "WaitingForGPU" in described(operated, second),
        lambda: f"kubectl describe says why it waits: {described(operated, second)}",
    )
    told = unscheduled(pod_named(owner, "shard-1"))
    assert told["reason"] == "Unschedulable", "another node would help"
    remove_pod(owner, "notebook")
    first, second = sorted(shards.wait_running(2), key=lambda p: str(p["metadata"]["name"]))
    (device,) = devices(second)
    assert device.device == taken.device
    assert devices(first)[0].device != taken.device
    assert_capped(operated, second, device.device, cap_mib(1000))
    shards.delete()


def test_a_daemon_set_gets_its_device_on_the_node_that_it_is_tied_to(
    operated: Running, owner: Tenant
) -> None:
    watchers = Workload(owner, "watcher", DAEMON_SETS).create(asking("0.25"))
    (pod,) = watchers.wait_running(1)
    rules = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = rules["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], field["values"]) == ("metadata.name", [REAL_NODE_NAME])
    assert pod["spec"]["nodeName"] == REAL_NODE_NAME
    assert pod["spec"]["schedulerName"] == "gpu-scheduler"
    (allocated,) = devices(pod)
    assert_capped(operated, pod, allocated.device, cap_mib(250))
    watchers.delete()


def test_a_cron_jobs_pod_has_its_share_until_it_ends_and_gives_way_as_training_does(
    operated: Running, owner: Tenant, nightly: Workload
) -> None:
    nightly.change(suspend=False)
    (pod,) = nightly.wait_running(1)
    nightly.change(suspend=True)
    (allocated,) = devices(pod)
    assert devices_there(operated, pod) == ({allocated.device}, {allocated.device})
    assert environment(operated, pod)["GPU_MEMORY_LIMIT_MIB"] == str(cap_mib(500))
    until(lambda: held(owner) == 0.5, "the project pays for it")

    # What restarts for ever keeps its place inside the quota; what ends gives way to a priority.
    short = asking("2", template(container("exec quickstart 1"), restartPolicy="Never"))
    short["metadata"]["annotations"] = {ASK_PRIORITY: "90"}
    make_pod(owner, "urgent", short)
    wait_phase(owner, "urgent", "Succeeded")
    (again,) = nightly.wait_running(1)
    assert again["metadata"]["uid"] != pod["metadata"]["uid"]
    let_end(operated, again)
    wait_phase(owner, again["metadata"]["name"], "Succeeded")
    until(lambda: held(owner) == 0, "its share is given back")

    def done() -> list[Json]:
        jobs = owner.admin.get(f"/apis/batch/v1/namespaces/{owner.name}/jobs").body["items"]
        return [job["status"] for job in jobs if job["status"].get("succeeded") == 1]

    (status,) = until(done, "its Job has succeeded")
    assert not status.get("failed"), "the eviction counts for nothing"
