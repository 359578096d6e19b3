"""Policies of a site that refuse Jobs: what satisfies them, and that lifting them is noticed."""

import pytest
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.mutating import mutating
from tests.api.tenant import Json, Tenant, until
from tests.api.test_refused_changes import ADMISSION, narrow


def labelled_jobs(name: str) -> tuple[Json, Json]:
    """A policy by which Jobs of one namespace, and their pods, have the label team."""
    policy, binding = narrow(name)
    rule = policy["spec"]["matchConstraints"]["resourceRules"][0]
    rule["operations"] = ["CREATE"]
    policy["spec"]["validations"] = [
        {
            "expression": "has(object.metadata.labels) && 'team' in object.metadata.labels "
            "&& has(object.spec.template.metadata.labels) "
            "&& 'team' in object.spec.template.metadata.labels",
            "message": "Jobs and their pods need the label team",
        }
    ]
    return policy, binding


def test_the_label_that_is_wanted_and_a_policy_that_is_lifted(tenant: Tenant) -> None:
    policy, binding = labelled_jobs(tenant.name)
    bindings = f"{ADMISSION}/validatingadmissionpolicybindings"
    assert tenant.admin.create(f"{ADMISSION}/validatingadmissionpolicies", policy).ok
    assert tenant.admin.create(bindings, binding).ok
    plain = {
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
        }
    }
    jobs = f"/apis/batch/v1/namespaces/{tenant.name}/jobs?dryRun=All"
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": plain}
    try:
        until(lambda: not tenant.admin.create(jobs, body).ok, "the policy is in force")
        for name in ("labelled", "lifted"):
            tenant.submit(name, gpu=0.5)
        for name in ("labelled", "lifted"):
            message = tenant.wait_reason(name, "Invalid")
            assert "need the label team" in message
            assert "labels of the GPUJob" in message
        assert tenant.label("labelled", team="vision").ok
        tenant.wait_phase("labelled", "Running")
        (pod,) = tenant.pods("labelled")
        assert pod["metadata"]["labels"]["team"] == "vision"
        assert tenant.admin.send("DELETE", f"{bindings}/{tenant.name}").ok
        tenant.wait_phase("lifted", "Running")
    finally:
        for plural in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            tenant.admin.send("DELETE", f"{ADMISSION}/{plural}/{tenant.name}")


@pytest.mark.skipif(not HAS_MUTATING_POLICIES, reason="Kubernetes before 1.36")
def test_who_sets_another_scheduler_on_pods_is_named(tenant: Tenant) -> None:
    mutation = {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{spec: Object.spec{schedulerName: 'volcano'}}"},
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": tenant.name}}}
    pods = f"/api/v1/namespaces/{tenant.name}/pods?dryRun=All"
    body = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    with mutating(tenant.admin, tenant.name, mutation, here, reinvocationPolicy="Never"):
        until(
            lambda: (
                tenant.admin.create(pods, body).body.get("spec", {}).get("schedulerName")
                == "volcano"
            ),
            "the policy is in force",
        )
        tenant.submit("taken", gpu=0.5)
        message = tenant.wait_reason("taken", "SchedulingGated")
        assert "names the scheduler volcano: a mutating policy or webhook" in message
