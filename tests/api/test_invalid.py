"""What a CRD's rules cannot see: Accepted=False, reason Invalid, a message that names the field."""

from tests.api.caller import Caller
from tests.api.tenant import Json, Tenant, template, until

from cluster import Running
from gpu_scheduler.api.names import API_VERSION


def accepted(status: Json) -> Json:
    return next(c for c in status["conditions"] if c["type"] == "Accepted")


def test_a_namespace_without_a_project_says_who_can_help_and_starts_once_it_has_one(
    admin: Caller,
) -> None:
    nobody = Tenant(admin).create()
    try:
        nobody.submit("lost", gpu=0.5)
        message = nobody.wait_reason("lost", "Invalid")
        assert nobody.name in message and "GPUProject" in message, message
        condition = accepted(nobody.status("lost"))
        assert (condition["status"], condition["reason"]) == ("False", "Invalid")
        assert nobody.batch_job("lost")["code"] == 404
        until(lambda: nobody.events("lost"), "an event says so")
        assert nobody.project(nobody.name, namespaces=[nobody.name], quota=1).ok
        nobody.wait_placed("lost")
        until(lambda: accepted(nobody.status("lost"))["status"] == "True", "it is accepted")
    finally:
        nobody.delete()


def test_a_template_that_no_pod_can_be_made_of_names_the_field(tenant: Tenant) -> None:
    bad = template()
    bad["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    tenant.submit("no-volume", gpu=0.5, template=bad)
    message = tenant.wait_reason("no-volume", "Invalid")
    assert "spec.template.spec.containers[0].volumeMounts[0].name" in message, message
    assert "data" in message


def test_a_pod_that_pod_security_refuses_says_which_rule(admin: Caller) -> None:
    strict = Tenant(admin).create(quota=1)
    try:
        labels = {"pod-security.kubernetes.io/enforce": "baseline"}
        path = f"/api/v1/namespaces/{strict.name}"
        assert admin.patch(path, {"metadata": {"labels": labels}}).ok
        strict.submit("nosy", gpu=0.5, template=template(hostPID=True))
        message = strict.wait_reason("nosy", "Invalid")
        assert "hostPID" in message and "spec.template" in message, message
    finally:
        strict.delete()


def test_a_name_that_leaves_no_room_for_the_index_is_refused(tenant: Tenant) -> None:
    name = "a" * 60
    spec = {"gpu": 0.5, "image": "x", "parallelism": 1, "completions": 1001}
    body = {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": {"name": name}, "spec": spec}
    answer = tenant.admin.create(f"/apis/{API_VERSION}/namespaces/{tenant.name}/gpujobs", body)
    assert answer.status == 422, answer
    assert "metadata.name" in answer.message and "58" in answer.message, answer.message


def test_a_job_of_that_name_that_is_not_ours_is_left_alone(tenant: Tenant) -> None:
    job = {
        "metadata": {"name": "taken"},
        "spec": {
            "suspend": True,
            "template": {"spec": template()["spec"] | {"restartPolicy": "Never"}},
        },
    }
    path = f"/apis/batch/v1/namespaces/{tenant.name}/jobs"
    assert tenant.admin.create(path, job).ok
    tenant.submit("taken", gpu=0.5)
    message = tenant.wait_reason("taken", "Invalid")
    assert "metadata.name" in message and "taken" in message, message
    assert "ownerReferences" not in tenant.batch_job("taken")["metadata"]
    tenant.admin.send("DELETE", f"{path}/taken")


def test_a_namespace_claimed_twice_stays_with_the_older_project(tenant: Tenant) -> None:
    thief = f"{tenant.name}-thief"
    assert tenant.project(thief, namespaces=[tenant.name], quota=100).ok
    path = f"/apis/gpu-scheduler.io/v1alpha1/gpuprojects/{thief}"
    try:
        until(
            lambda: tenant.admin.get(path).body.get("status", {}).get("conditions"),
            "the second claim is judged",
        )
        condition = accepted(tenant.admin.get(path).body["status"])
        assert condition["status"] == "False" and condition["reason"] == "Invalid"
        assert "spec.namespaces" in condition["message"]
        assert f"belongs to GPUProject {tenant.name}" in condition["message"]
        tenant.submit("mine", gpu=0.5)
        tenant.wait_placed("mine")
        until(lambda: tenant.status("mine").get("project") == tenant.name, "it is charged there")
    finally:
        tenant.admin.send("DELETE", path)


def test_a_request_that_no_node_could_hold_is_unsatisfiable_at_once(
    tenant: Tenant, scheduled: Running
) -> None:
    tenant.submit("too-many", gpu=3)
    assert "3" in tenant.wait_reason("too-many", "Unsatisfiable")
    tenant.submit("wrong-model", gpu=0.5, gpuModels=["H100"])
    message = tenant.wait_reason("wrong-model", "Unsatisfiable")
    assert "H100" in message.upper() and "A100" in message, message


def test_an_operator_without_the_library_cannot_be_asked_for_it(tenant: Tenant) -> None:
    """It was given no image that has the library."""
    tenant.submit("plain", gpu=0.5)
    tenant.wait_placed("plain")
    assert "gpu-scheduler-cap" not in str(tenant.pods("plain"))
    tenant.submit("wants", gpu=0.5, isolation="interposer")
    assert "spec.isolation" in tenant.wait_reason("wants", "Invalid")
