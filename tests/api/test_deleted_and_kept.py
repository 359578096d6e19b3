"""What is deleted lets go at once, whoever keeps the object from going."""

import pytest
from tests.api.replica import CALM_LEASE
from tests.api.site import Team
from tests.api.tenant import GROUP, Tenant, held, runs, template, until

SETTINGS = CALM_LEASE
FOREIGN = "example.com/wait"


def path_of(tenant: Tenant, kind: str) -> str:
    """Of the GPUJob, its Job, or its pod."""
    if kind == "gpujob":
        return f"{GROUP}/namespaces/{tenant.name}/gpujobs/kept"
    if kind == "job":
        return f"/apis/batch/v1/namespaces/{tenant.name}/jobs/kept"
    (pod,) = tenant.pods("kept")
    return f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"


def keep(tenant: Tenant, path: str) -> None:
    has = tenant.admin.get(path).body["metadata"].get("finalizers", [])
    assert tenant.admin.patch(path, {"metadata": {"finalizers": [*has, FOREIGN]}}).ok


def release(tenant: Tenant, path: str) -> None:
    has = tenant.admin.get(path).body["metadata"].get("finalizers", [])
    left = [each for each in has if each != FOREIGN]
    assert tenant.admin.patch(path, {"metadata": {"finalizers": left}}).ok


@pytest.mark.parametrize("kind", ["gpujob", "job", "pod"])
def test_its_pods_end_and_its_gpus_are_free_before_the_object_goes(team: Team, kind: str) -> None:
    tenant = team(quota=8)
    tenant.submit("kept", gpu=1, template=template(runs(3600)))
    tenant.wait_phase("kept", "Running")
    until(lambda: held(tenant) == 1, "its GPU is counted")
    path = path_of(tenant, kind)
    keep(tenant, path)
    tenant.remove("kept")
    try:
        until(lambda: held(tenant) == 0, lambda: f"its GPU is free; {tenant.pods('kept')}")
        assert "deletionTimestamp" in tenant.admin.get(path).body["metadata"]
        if kind == "gpujob":
            # They hold nothing once they have ended; their Job's controller lets them go later.
            until(lambda: tenant.pods("kept") == [], "its pods are gone")
            status = until(
                lambda: (s := tenant.status("kept"))["phase"] == "Pending" and s,
                lambda: f"it says that nothing runs; {tenant.status('kept')}",
            )
            assert status["reason"] == "Deleting" and FOREIGN in status["message"]
    finally:
        release(tenant, path)
    until(lambda: tenant.admin.get(path).status == 404, "the object is gone")


def told(tenant: Tenant, job: str) -> dict[str, str]:
    """What the only pod of a job says of its owner."""
    (pod,) = tenant.pods(job)
    found = {c["type"]: c for c in pod["status"].get("conditions", ())}
    return found.get("gpu-scheduler.io/Owned", {})


def test_who_leaves_its_job_behind_keeps_the_pods_and_they_their_gpus(team: Team) -> None:
    tenant = team(quota=8)
    tenant.submit("left", gpu=1, priority=10, template=template(runs(3600)))
    tenant.wait_phase("left", "Running")
    path = f"{GROUP}/namespaces/{tenant.name}/gpujobs/left"
    assert tenant.admin.send("DELETE", path, {"propagationPolicy": "Orphan"}).ok
    until(lambda: tenant.admin.get(path).status == 404, "the GPUJob is gone")
    (pod,) = tenant.pods("left")
    assert "deletionTimestamp" not in pod["metadata"]
    until(lambda: held(tenant) == 1, "its GPU is nobody else's")
    said = until(lambda: told(tenant, "left"), "the pod says that nobody owns it")
    assert (said["status"], said["reason"]) == ("False", "OwnerGone")
    assert f"charged to project {tenant.name}" in said["message"]
    (node,) = {each.node for each in tenant.allocations("left")}
    elsewhere = template(nodeSelector={"kubernetes.io/hostname": node})
    tenant.submit("next", gpu=2, priority=100, template=elsewhere)
    tenant.wait_reason("next", "WaitingForGPU")
    (same,) = tenant.pods("left")
    assert same["metadata"]["uid"] == pod["metadata"]["uid"], "whatever the other's priority"
    assert "deletionTimestamp" not in same["metadata"]
    job = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/left"
    assert tenant.admin.send("DELETE", job, {"propagationPolicy": "Background"}).ok
    tenant.wait_phase("next", "Running")


def test_a_pod_that_its_job_left_behind_keeps_its_gpu_and_says_so(team: Team) -> None:
    tenant = team(quota=8)
    tenant.submit("left", gpu=1, template=template(runs(3600)))
    tenant.wait_phase("left", "Running")
    path = f"{GROUP}/namespaces/{tenant.name}/gpujobs/left"
    assert tenant.admin.send("DELETE", path, {"propagationPolicy": "Orphan"}).ok
    job = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/left"
    assert tenant.admin.send("DELETE", job, {"propagationPolicy": "Orphan"}).ok
    until(lambda: tenant.admin.get(job).status == 404, "the Job is gone")
    said = until(lambda: told(tenant, "left"), lambda: f"it says so: {tenant.pods('left')}")
    assert said["reason"] == "OwnerGone"
    until(lambda: held(tenant) == 1, "its project pays for it")
    (pod,) = tenant.pods("left")
    where = f"/api/v1/namespaces/{tenant.name}/pods/{pod['metadata']['name']}"
    assert tenant.admin.send("DELETE", where).ok
    until(lambda: held(tenant) == 0, "its GPU is free")


def test_a_namespace_that_goes_is_held_up_by_the_finalizer_alone(team: Team) -> None:
    tenant = team(quota=8)
    tenant.submit("kept", gpu=1, template=template(runs(3600)))
    tenant.wait_phase("kept", "Running")
    path = path_of(tenant, "gpujob")
    keep(tenant, path)
    assert tenant.admin.send("DELETE", f"/api/v1/namespaces/{tenant.name}").ok
    until(lambda: tenant.pods("kept") == [], "its pod is gone")
    message = tenant.wait_reason("kept", "Deleting")
    assert FOREIGN in message
    release(tenant, path)
    until(lambda: tenant.admin.get(path).status == 404, "the object is gone")
