"""Whatever was written into a pod or a GPUJob before, it can be told of, end and go.

An update is judged by what it changes. The administrator of these tests stands for kubelet, Job
controller and garbage collector: the policies trust neither.
"""

from tests.api.admission.objects import (
    ELSEWHERE,
    RELEASE,
    VISIBLE,
    created,
    pod,
    pods,
    refused,
    wait_until,
)
from tests.api.caller import Answer, Caller
from tests.unit.api.sweep_cases import sweep

from cluster import Running

FINALIZER = "example.com/stay"
LABELLED = {"metadata": {"labels": {"gpu-scheduler.io/job": "x"}}}
GPUJOBS = f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{ELSEWHERE}/gpujobs"


def add_ephemeral(caller: Caller, path: str, name: str, value: str) -> Answer:
    container = {"name": name, "image": "example", "env": [{"name": VISIBLE, "value": value}]}
    return caller.send(
        "PATCH",
        f"{path}/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [container]}},
        "application/strategic-merge-patch+json",
    )


def goes(admin: Caller, path: str) -> None:
    """What kubelet, Job controller and garbage collector do with a pod until it is gone."""
    status = {"status": {"phase": "Failed", "reason": "Evicted"}}
    assert (answer := admin.patch(f"{path}/status", status)).ok, answer.message
    assert (answer := admin.send("DELETE", path, {"gracePeriodSeconds": 0})).ok, answer.message
    assert (answer := admin.patch(path, {"metadata": {"finalizers": None}})).ok, answer.message
    wait_until(lambda: admin.get(path).status == 404)


def test_a_pod_with_an_odd_ephemeral_container_ends_and_goes(
    admin: Caller, editor: Caller, exempt: str
) -> None:
    body = pod(exempt)
    body["metadata"]["finalizers"] = [FINALIZER]
    path = created(editor, body)
    assert add_ephemeral(admin, path, "odd", "all").ok
    assert editor.patch(path, LABELLED).ok
    assert refused(add_ephemeral(admin, path, "odder", "all"))
    assert (answer := add_ephemeral(admin, path, "harmless", "void")).ok, answer.message
    goes(admin, path)


def test_the_job_controller_counts_the_end_of_such_a_pod(
    admin: Caller, editor: Caller, exempt: str
) -> None:
    jobs = f"/apis/batch/v1/namespaces/{exempt}/jobs"
    container = {"name": "main", "image": "example"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {"metadata": {"name": "odd"}, "spec": {"template": template, "backoffLimit": 0}}
    assert (answer := editor.create(jobs, body)).ok, answer.message
    selector = f"{pods(exempt)}?labelSelector=job-name=odd"
    wait_until(lambda: len(editor.get(selector).body["items"]) == 1)
    path = pods(exempt, editor.get(selector).body["items"][0]["metadata"]["name"])
    assert add_ephemeral(admin, path, "odd", "all").ok
    assert editor.patch(path, LABELLED).ok
    status = {"status": {"phase": "Failed"}}
    assert (answer := admin.patch(f"{path}/status", status)).ok, answer.message
    wait_until(lambda: editor.get(f"{jobs}/odd").body["status"].get("failed") == 1)
    wait_until(lambda: "finalizers" not in editor.get(path).body["metadata"])


def test_a_gpujob_of_before_a_rule_is_looked_at_only_when_it_changes(
    cluster: Running, admin: Caller, editor: Caller
) -> None:
    """Such as by the garbage collector, which takes references to owners away."""
    name = f"{RELEASE}-sweeps"
    policy = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    binding = admin.get(f"{policy}/{name}").body
    body = {
        "apiVersion": "gpu-scheduler.io/v1alpha1",
        "kind": "GPUJob",
        "metadata": {"name": "ambiguous", "finalizers": [FINALIZER]},
        "spec": sweep(args=["${hparam.unknown}"]),
    }
    assert "ValidatingAdmissionPolicy" in editor.create(GPUJOBS, body).message
    assert admin.send("DELETE", f"{policy}/{name}").ok
    try:
        wait_until(lambda: editor.create(f"{GPUJOBS}?dryRun=All", body).ok)
        assert (answer := editor.create(GPUJOBS, body)).ok, answer.message
    finally:
        kept = {"metadata": {"name": name, "labels": binding["metadata"]["labels"]}}
        assert admin.create(policy, {**binding, **kept}).ok
    other = {**body, "metadata": {"name": "other"}}
    wait_until(lambda: not editor.create(f"{GPUJOBS}?dryRun=All", other).ok)
    path = f"{GPUJOBS}/ambiguous"
    assert (answer := editor.patch(path, {"metadata": {"finalizers": None}})).ok, answer.message
    assert editor.send("DELETE", path).ok
