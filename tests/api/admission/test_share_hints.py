"""A workload that seems to ask for a share, and does not, is taken with a Warning."""

from typing import Any

import pytest
from tests.api.admission.objects import ELSEWHERE, created, pod, pods, wait_until
from tests.api.caller import Answer, Caller

from gpu_scheduler.api.share_hints import hints

Json = dict[str, Any]

GPU = "gpu-scheduler.io/gpu"
MEMORY = "gpu-scheduler.io/gpu-memory"
KINDS = {
    "Deployment": ("apps/v1", "deployments"),
    "ReplicaSet": ("apps/v1", "replicasets"),
    "StatefulSet": ("apps/v1", "statefulsets"),
    "DaemonSet": ("apps/v1", "daemonsets"),
    "Job": ("batch/v1", "jobs"),
    "CronJob": ("batch/v1", "cronjobs"),
}
META: tuple[tuple[Json, Json, Json, Json], ...] = (
    ({GPU: "0.5"}, {}, {}, {}),
    ({}, {MEMORY: "8Gi"}, {}, {}),
    ({GPU: "0.5"}, {MEMORY: "8Gi"}, {GPU: "0.5"}, {MEMORY: "8Gi"}),
    ({}, {}, {"gpu-scheduler.io/gpus": "0.5"}, {}),
    ({}, {}, {"gpu-scheduler.io/GPU_Memory": "x", MEMORY: "8Gi"}, {"gpuscheduler.io/gpu": "1"}),
    ({}, {}, {"gpu-scheduler.io/colour": "red"}, {"gpu-scheduler.io/gang": "x"}),
    ({"gpu-scheduler.io/gpus": "1"}, {}, {"gpu-scheduler.example.com/pool": "x"}, {}),
    ({}, {}, {"gpu-scheduler.io/job": "x"}, {"gpu-scheduler.io/c0-devices": "void"}),
)


def workload(kind: str, meta: tuple[Json, Json, Json, Json]) -> tuple[str, Json, Json, str]:
    """Where it is made, the workload, its template, and that one's field."""
    labels, notes, inner_labels, inner_notes = meta
    version, plural = KINDS[kind]
    template = {
        "metadata": {"labels": {"app": "x", **inner_labels}, "annotations": inner_notes},
        "spec": {
            "restartPolicy": "Never" if version == "batch/v1" else "Always",
            "containers": [{"name": "main", "image": "x"}],
        },
    }
    spec: Json = {"template": template}
    if version == "apps/v1":
        spec["selector"] = {"matchLabels": {"app": "x"}}
    field = "spec.template"
    if kind == "StatefulSet":
        spec["serviceName"] = "x"
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
        field = "spec.jobTemplate.spec.template"
    body = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "hinted", "labels": labels, "annotations": notes},
        "spec": spec,
    }
    return f"/apis/{version}/namespaces/{ELSEWHERE}/{plural}", body, template, field


def told(answer: Answer) -> str:
    """What our Warnings say."""
    assert answer.ok, answer.message
    ours = (each for each in answer.warnings if "share-hints" in each)
    return "; ".join(each.partition("-share-hints': ")[2].removesuffix('"') for each in ours)


@pytest.fixture(scope="module")
def user(editor: Caller) -> Caller:
    """An editor, once the API server knows the policy."""
    path, body, *_ = workload("Deployment", META[0])
    wait_until(lambda: bool(told(editor.create(f"{path}?dryRun=All", body))))
    return editor


@pytest.mark.parametrize("meta", META, ids=range(len(META)))
@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_says_what_the_function_says(
    user: Caller, kind: str, meta: tuple[Json, Json, Json, Json]
) -> None:
    path, body, template, field = workload(kind, meta)
    expected = "; ".join(map(str, hints(body["metadata"], template, field)))
    said = told(user.create(f"{path}?dryRun=All", body))
    assert sorted(said.split("; ")) == sorted(expected.split("; "))


def test_a_limit_that_no_node_has(user: Caller) -> None:
    path, body, template, field = workload("Deployment", ({}, {}, {}, {}))
    limits = {"cpu": "1", "gpu-scheduler.io/gpu": 1}
    template["spec"]["containers"][0]["resources"] = {"limits": limits}
    said = told(user.create(f"{path}?dryRun=All", body))
    assert "no node has it" in said
    assert said == "; ".join(map(str, hints(body["metadata"], template, field)))


def test_a_pod_with_a_key_that_nobody_knows(user: Caller, admin: Caller) -> None:
    body = pod(ELSEWHERE, annotations={"gpu-scheduler.io/c0-devices": "void", "x/y": "z"})
    body["metadata"]["labels"] = {"gpu-scheduler.io/gpus": "0.5"}
    said = told(user.create(f"{pods(ELSEWHERE)}?dryRun=All", body))
    assert said == "; ".join(map(str, hints(body["metadata"])))
    assert told(user.create(f"{pods(ELSEWHERE)}?dryRun=All", pod(ELSEWHERE))) == ""


def test_a_label_that_is_changed_on_a_pod_counts_no_more(user: Caller, admin: Caller) -> None:
    path = created(admin, pod(ELSEWHERE))
    for word in ("0.5", "1", None):
        said = told(user.patch(path, {"metadata": {"labels": {GPU: word}}}))
        assert said.startswith(f"metadata.labels[{GPU}]: counts when a pod is made"), word
    assert told(user.patch(path, {"metadata": {"labels": {"app": "x"}}})) == ""


def test_an_annotation_that_is_changed_on_a_pod_is_refused_with_the_way_out(
    user: Caller, admin: Caller
) -> None:
    path = created(admin, pod(ELSEWHERE))
    answer = user.patch(path, {"metadata": {"annotations": {MEMORY: "8Gi"}}})
    assert answer.status == 403
    assert "counts when a pod is made: change the pod template" in answer.message
