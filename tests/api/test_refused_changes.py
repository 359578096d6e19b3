"""What becomes of changes of a running job: refused by a policy, or asked for without a project."""

from tests.api.tenant import GROUP, Json, Tenant, until

ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def narrow(name: str) -> tuple[Json, Json]:
    """A policy of a site by which Jobs of one namespace stay narrow, and its binding."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["batch"],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["jobs"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            },
            "validations": [
                {"expression": "object.spec.parallelism < 2", "message": "no wide Jobs here"}
            ],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding


def test_a_change_that_a_policy_refuses_is_said_until_it_is_taken_back(tenant: Tenant) -> None:
    tenant.submit("wide", gpu=0.5, parallelism=1, completions=4)
    tenant.wait_phase("wide", "Running")
    policy, binding = narrow(tenant.name)
    assert tenant.admin.create(f"{ADMISSION}/validatingadmissionpolicies", policy).ok
    assert tenant.admin.create(f"{ADMISSION}/validatingadmissionpolicybindings", binding).ok
    job = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/wide?dryRun=All"
    try:
        until(
            lambda: not tenant.admin.patch(job, {"spec": {"parallelism": 3}}).ok,
            "the policy is in force",
        )
        assert tenant.patch("wide", parallelism=3).ok
        message = tenant.wait_reason("wide", "Invalid")
        assert message.startswith("spec.parallelism: the API server refuses the change of Job wide")
        assert "no wide Jobs here" in message
        assert tenant.status("wide")["phase"] == "Running"
        assert tenant.patch("wide", parallelism=1).ok
        until(
            lambda: not tenant.status("wide").get("reason"),
            lambda: f"nothing is wrong any more; status {tenant.status('wide')}",
        )
    finally:
        for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            tenant.admin.send("DELETE", f"{ADMISSION}/{plural}/{tenant.name}")


def test_a_job_whose_project_is_gone_can_be_suspended(tenant: Tenant) -> None:
    tenant.submit("orphaned", gpu=1)
    tenant.wait_phase("orphaned", "Running")
    assert tenant.admin.send("DELETE", f"{GROUP}/gpuprojects/{tenant.name}").ok
    tenant.wait_reason("orphaned", "Invalid")
    assert tenant.patch("orphaned", suspend=True).ok
    until(lambda: not tenant.pods("orphaned"), "its pods are gone")


def test_a_write_for_another_object_of_the_name_names_the_uid(tenant: Tenant) -> None:
    """By this the operator tells it from a change that its owner has to mend."""
    tenant.submit("named", gpu=0.5)
    tenant.wait_placed("named")
    path = f"/apis/batch/v1/namespaces/{tenant.name}/jobs/named"
    body = {"metadata": {"uid": "another"}, "spec": {"parallelism": 2}}
    answer = tenant.admin.patch(path, body)
    assert answer.status == 422
    assert "metadata.uid" in [cause["field"] for cause in answer.body["details"]["causes"]]
