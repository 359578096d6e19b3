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

FULL = (("a", "0", 1000), ("a", "1", 1000), ("b", "0", 1000), ("b", "1", 1000))
CUSTOM = "/apis/gpu-scheduler.io/v1alpha1"
LISTS = {
    "GPUJob": f"{CUSTOM}/gpujobs",
    "GPUProject": f"{CUSTOM}/gpuprojects",
    "GPUNode": f"{CUSTOM}/gpunodes",
    "GPUClass": f"{CUSTOM}/gpuclasses",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
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
