"""``why`` as it is typed, on a server that knows some objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.objects_server import Objects, serving
from tests.unit.simulate.scenes import cluster, holds, share_pods, waits

from gpu_scheduler.cli.commands import why
from gpu_scheduler.cli.root import app
from gpu_scheduler.simulate.cluster_objects import Objects as Known

CREATED = "2026-01-01T00:00:00Z"
FULL = (("a", "0", 1000), ("a", "1", 1000), ("b", "0", 1000), ("b", "1", 1000))
CUSTOM = "/apis/gpu-scheduler.io/v1alpha1"
LISTS = {
    "GPUJob": f"{CUSTOM}/gpujobs",
    "GPUProject": f"{CUSTOM}/gpuprojects",
    "GPUNode": f"{CUSTOM}/gpunodes",
    "GPUClass": f"{CUSTOM}/gpuclasses",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "Event": "/api/v1/events",
    "Job": "/apis/batch/v1/jobs",
}


def served(known: Known) -> Objects:
    # Lists are asked for by label where only Jobs of GPUJobs matter.
    for body in known.of("Job"):
        labels: Any = body["metadata"].setdefault("labels", {})  # type: ignore[attr-defined]
        labels["gpu-scheduler.io/job"] = body["metadata"]["name"]
    return Objects({path: [dict(b) for b in known.of(kind)] for kind, path in LISTS.items()})


class Typed:
    """Types commands at a server."""

    def __init__(self, objects: Objects, kubeconfig: str) -> None:
        self.objects, self._environment = objects, {"KUBECONFIG": kubeconfig}

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(app, list(words), env=self._environment, catch_exceptions=False)


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[Typed]:
    objects = served(
        cluster(
            *holds("low", *FULL[:3], ("b", "1", 800)),
            *waits("train", message="needs 0.5 of a GPU", gpu=0.5),
            *share_pods("web", waiting=1, message="WaitingForGPU: needs 0.5 of a GPU"),
        )
    )
    with serving(objects, tmp_path) as kubeconfig:
        yield Typed(objects, kubeconfig)


def test_one_screen_begins_with_what_the_operator_said(gpu: Typed) -> None:
    done = gpu("why", "train")
    assert done.exit_code == 0, done.output
    first, second, *_ = done.output.splitlines()
    assert first == "GPUJob team-a/train is Pending: WaitingForGPU"
    assert second.strip() == "needs 0.5 of a GPU"
    assert "GPU 1 has 0.2 free of 0.5 wanted" in done.output
    assert "Estimate: not known" in done.output


def test_json_has_all_keys(gpu: Typed) -> None:
    found = json.loads(gpu("why", "gpujob/train", "-o", "json").output)
    assert set(found) == {
        *("object", "verdict", "project", "projects", "place", "before", "candidates"),
        *("holders", "estimate", "notShown"),
    }
    assert found["object"] == {
        "kind": "gpujob",
        "namespace": "team-a",
        "name": "train",
        "pod": None,
    }


def test_a_workload_is_asked_about_by_kind_and_name(gpu: Typed) -> None:
    done = gpu("why", "rs/web-5d4f")
    assert done.exit_code == 0, done.output
    assert done.output.startswith(
        "replicaset team-a/web-5d4f, pod web-5d4f-0 is Pending: WaitingForGPU\n"
    )


def test_what_is_not_there_ends_with_1_in_one_line(gpu: Typed) -> None:
    done = gpu("why", "nobody")
    assert done.exit_code == 1 and done.stdout == "" and done.stderr.count("\n") == 1


def test_without_the_right_to_read_nodes_the_headline_is_left(gpu: Typed) -> None:
    gpu.objects.forbidden.add("/api/v1/nodes")
    done = gpu("why", "train")
    assert done.exit_code == 0
    assert "is Pending: WaitingForGPU" in done.output and "Queue of" not in done.output
    assert "you cannot list /api/v1/nodes" in done.output.splitlines()[-1]


@pytest.mark.long(always=True)
def test_watch_prints_again_when_something_has_changed(
    gpu: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def pause(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            (job,) = [
                each
                for each in gpu.objects.lists[LISTS["GPUJob"]]
                if each["metadata"]["name"] == "train"
            ]
            job["status"] = {**job["status"], "message": "another sentence"}
        if looks == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(why, "_pause", pause)
    done = gpu("why", "train", "-w")
    assert done.exit_code == 0
    assert done.output.count("is Pending: WaitingForGPU") == 2
    assert done.output.count("another sentence") == 1


REFUSED = 'pods "web-5d4f-" is forbidden: exceeded quota: few, requested: pods=1'


def refused(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A workload whose controller says that none of its pods is made."""
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    template = {"metadata": {"labels": {"gpu-scheduler.io/gpu": "0.5"}}, "spec": {"containers": []}}
    return {
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": name, "creationTimestamp": CREATED, **more},
        "spec": {"replicas": 1, "template": template},
        "status": {"conditions": [{**failure, "message": REFUSED}]},
    }


def failed_create(kind: str, name: str, message: str, at: str = CREATED) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team-a", "name": f"{name}.1", "creationTimestamp": at},
        "involvedObject": {"kind": kind, "name": name},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": at,
    }


def test_a_deployment_whose_pods_are_refused_says_the_refusal(gpu: Typed) -> None:
    deployment, owner = (
        {"metadata": {"namespace": "team-a", "name": "web"}, "spec": {"replicas": 1}},
        {"kind": "Deployment", "name": "web", "controller": True},
    )
    gpu.objects.lists["/apis/apps/v1/deployments"] = [deployment]
    gpu.objects.lists["/apis/apps/v1/replicasets"] = [
        refused("ReplicaSet", "web-77", ownerReferences=[owner])
    ]
    done = gpu("why", "deploy/web")
    assert done.exit_code == 0, done.output
    first, second, *_ = done.output.splitlines()
    assert first == "deployment team-a/web is Pending: PodsRefused"
    assert second.strip() == f"replicaset web-77: {REFUSED}"
    assert "kubectl describe replicaset web-77" in done.output
    found = json.loads(gpu("why", "deploy/web", "-o", "json").output)
    assert found["verdict"]["reason"] == "PodsRefused" and found["object"]["pod"] is None


@pytest.mark.parametrize(
    ("word", "kind", "path"),
    [
        ("sts/db", "StatefulSet", "/apis/apps/v1/statefulsets"),
        ("ds/db", "DaemonSet", "/apis/apps/v1/daemonsets"),
        ("job/db", "Job", "/apis/batch/v1/jobs"),
        ("raycluster/db", "RayCluster", ""),
    ],
)
def test_of_others_their_controllers_events_say_it(
    gpu: Typed, word: str, kind: str, path: str
) -> None:
    body = {"kind": kind, "metadata": {"namespace": "team-a", "name": "db"}, "spec": {}}
    if path:
        gpu.objects.lists[path] = [body]
    gpu.objects.lists["/api/v1/events"] = [
        failed_create(kind, "db", "Error creating: an older one", "2026-01-01T00:00:00Z"),
        failed_create(kind, "db", "Error creating: no label team", "2026-01-01T00:01:00Z"),
        failed_create(kind, "another", "Error creating: something else"),
    ]
    done = gpu("why", word)
    assert done.exit_code == 0, done.output
    first, second, *_ = done.output.splitlines()
    assert first == f"{kind.lower()} team-a/db is Pending: PodsRefused"
    assert second.strip() == f"{kind.lower()} db: Error creating: no label team"


def test_pods_that_are_refused_are_told_beside_those_that_run(gpu: Typed) -> None:
    """A rollout whose new pods are refused goes on with the old ones."""
    (pod,) = (
        each
        for each in gpu.objects.lists["/api/v1/pods"]
        if each["metadata"]["name"].startswith("low-0")
    )
    pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-66"}]
    gpu.objects.lists["/apis/apps/v1/deployments"] = [refused("Deployment", "web")]
    gpu.objects.lists["/apis/apps/v1/replicasets"] = [
        {
            "metadata": {
                "namespace": "team-a",
                "name": "web-66",
                "ownerReferences": [{"kind": "Deployment", "name": "web"}],
            }
        }
    ]
    done = gpu("why", "deploy/web")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("deployment team-a/web is Running\n")
    assert f"deployment web: {REFUSED}" in done.output


def test_a_workload_without_pods_says_who_makes_none(gpu: Typed) -> None:
    gpu.objects.lists["/apis/apps/v1/deployments"] = [
        {"metadata": {"namespace": "team-a", "name": "none"}, "spec": {"replicas": 0}},
        {"metadata": {"namespace": "team-a", "name": "new"}, "spec": {"replicas": 1}},
    ]
    gpu.objects.lists["/apis/apps/v1/replicasets"] = []
    assert "spec.replicas is 0" in gpu("why", "deploy/none").output
    assert "made no pod of it yet" in gpu("why", "deploy/new").output
    done = gpu("why", "deploy/nobody")
    assert done.exit_code == 1 and done.stdout == ""
    assert done.stderr.startswith("gpu-scheduler: there is no deployment called nobody in ")


def test_a_key_in_the_wrong_place_is_named(gpu: Typed) -> None:
    gpu.objects.lists["/apis/apps/v1/deployments"] = [
        {
            "metadata": {
                "namespace": "team-a",
                "name": "new",
                "labels": {"gpu-scheduler.io/gpu": "0.5"},
            },
            "spec": {
                "replicas": 0,
                "template": {
                    "metadata": {"annotations": {"gpu-scheduler.io/gpu-mem": "8Gi"}},
                    "spec": {"containers": [{"name": "main"}]},
                },
            },
        },
    ]
    gpu.objects.lists["/apis/apps/v1/replicasets"] = []
    said = " ".join(gpu("why", "deploy/new").output.split())
    assert "metadata.labels[gpu-scheduler.io/gpu]: counts on pods alone" in said
    assert "spec.template.metadata.labels" in said
    assert "gpu-mem]: is unknown; write gpu-scheduler.io/gpu-memory" in said


def test_a_key_of_a_pod_that_nobody_knows_is_named(gpu: Typed) -> None:
    meta = {"namespace": "team-a", "name": "nb", "labels": {"gpu-scheduler.io/GPUs": "0.5"}}
    body = {"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Pending"}}
    gpu.objects.lists["/api/v1/pods"].append(body)
    said = " ".join(gpu("why", "pod/nb").output.split())
    assert "metadata.labels[gpu-scheduler.io/GPUs]: is unknown; write gpu-scheduler.io/gpu" in said


def test_other_commands_say_why_there_is_no_pod(gpu: Typed) -> None:
    gpu.objects.lists["/apis/apps/v1/statefulsets"] = [refused("StatefulSet", "db")]
    for words in (("logs", "sts/db"), ("describe", "sts/db")):
        done = gpu(*words)
        assert done.exit_code == 1 and REFUSED in done.stderr, done.output
