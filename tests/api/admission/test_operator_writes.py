"""The operator's own writes pass, made here by its own code, from the Job to the placement."""

from typing import Any

import pytest
from msgspec import convert
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.admission.objects import PROJECT, RELEASE, pod, pods, refused, wait_until
from tests.api.admission.test_stolen_operator_token import JOBS, gpujob, rendered, told
from tests.api.caller import Answer, Caller

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import TERM
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.place import Pin, place
from gpu_scheduler.jobs.render import RenderInput, render
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube.media_types import STRATEGIC_MERGE_PATCH
from gpu_scheduler.kube.objects import Pod


@pytest.mark.parametrize("path", [WritePath.BIND, WritePath.GATE])
def test_the_operators_own_writes_pass_from_the_job_to_the_placement(
    operator: Caller, editor: Caller, term: str, path: WritePath
) -> None:
    name = f"honest-{path.value}"
    made = editor.create(
        f"/apis/gpu-scheduler.io/v1alpha1/namespaces/{PROJECT}/gpujobs",
        {
            "apiVersion": "gpu-scheduler.io/v1alpha1",
            "kind": "GPUJob",
            "metadata": {"name": name},
            "spec": {"image": "example", "gpu": 0.5},
        },
    )
    assert made.ok, made.message
    job = render(
        RenderInput(
            name=name,
            namespace=PROJECT,
            uid=made.body["metadata"]["uid"],
            spec=GPUJobSpec.model_validate({"image": "example", "gpu": 0.5}),
            project=PROJECT,
            path=path,
            has_runtime_class=True,
            has_priority_class=True,
        )
    )
    answer = operator.create(f"/apis/batch/v1/namespaces/{PROJECT}/jobs", job)
    assert answer.ok, answer.message
    selector = f"{pods(PROJECT)}?labelSelector=job-name={name}"
    wait_until(lambda: len(operator.get(selector).body["items"]) == 1)
    (waiting,) = operator.get(selector).body["items"]
    assert waiting["metadata"]["annotations"]["gpu-scheduler.io/c0-devices"] == "void"

    write = place(
        convert(waiting, Pod),
        "node-0",
        [DeviceAllocation(0, "GPU-0", 500, 20224)],
        pin=Pin.AFFINITY,
        more={TERM: term},
    )
    refusal = editor.send(write.method, write.path, dict(write.body), write.content_type)
    assert refusal.status == 403
    answer = operator.send(write.method, write.path, dict(write.body), write.content_type)
    assert answer.ok, answer.message
    placed = operator.get(pods(PROJECT, waiting["metadata"]["name"])).body
    assert placed["metadata"]["annotations"]["gpu-scheduler.io/c0-devices"] == "GPU-0"
    assert placed["metadata"]["annotations"][TERM] == term
    assert "schedulingGates" not in placed["spec"]


@pytest.mark.skipif(not HAS_MUTATING_POLICIES, reason="Kubernetes before 1.36")
def test_it_says_why_a_pod_waits_and_nothing_of_one_that_does_not(
    operator: Caller, admin: Caller, editor: Caller
) -> None:
    """Of a pod that waits for it, asking or not; not that it is scheduled, nor of others' pods."""
    asks = pod(PROJECT, annotations={"gpu-scheduler.io/gpu": "0.5"})
    del asks["spec"]["containers"][0]["env"]
    plain, stray = pod(PROJECT), pod(PROJECT)
    stray["spec"]["schedulerName"] = "gpu-scheduler"
    for body in (asks, plain, stray):
        assert (answer := editor.create(pods(PROJECT), body)).ok, answer.message

    def says(body: dict[str, Any], condition: str, status: str) -> Answer:
        told = {"type": condition, "status": status, "reason": "WaitingForQuota"}
        path = pods(PROJECT, f"{body['metadata']['name']}/status")
        change = {"status": {"conditions": [told]}}
        return operator.send("PATCH", path, change, STRATEGIC_MERGE_PATCH)

    for body in (asks, stray):
        assert (answer := says(body, "PodScheduled", "False")).ok, answer.message
    refused = [
        says(asks, "PodScheduled", "True"),
        says(asks, "Ready", "False"),
        says(plain, "PodScheduled", "False"),
    ]
    assert [answer.status for answer in refused] == [403] * 3
    for body in (asks, plain, stray):
        admin.send("DELETE", pods(PROJECT, body["metadata"]["name"]))


def test_it_deletes_jobs_of_gpujobs_alone(operator: Caller, admin: Caller, editor: Caller) -> None:
    """As it does in a namespace that is being deleted, docs/adr/0040."""
    owner = gpujob(editor, "goes")
    job = rendered(owner, WritePath.BIND)
    assert (answer := operator.create(JOBS, job)).ok, answer.message
    assert (answer := operator.send("DELETE", f"{JOBS}/goes")).ok, answer.message
    job["metadata"]["ownerReferences"] = []
    job["metadata"]["name"] = "stays"
    assert (answer := admin.create(JOBS, job)).ok, answer.message
    told(operator.send("DELETE", f"{JOBS}/stays"))


def test_it_tries_pod_templates_and_stores_none(operator: Caller) -> None:
    """How those of GPUJobs are judged, docs/adr/0056."""
    path = f"/api/v1/namespaces/{RELEASE}/podtemplates"
    spec = {"containers": [{"name": "main", "image": "x"}]}
    body = {"metadata": {"name": "judged"}, "template": {"spec": spec}}
    answer = operator.create(f"{path}?dryRun=All&fieldValidation=Strict", body)
    assert answer.ok, answer.message
    answer = operator.create(path, body)
    assert refused(answer) and "only as a dry run" in answer.message, answer
    assert operator.create(path.replace(RELEASE, PROJECT), body).status == 403
