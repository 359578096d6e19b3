"""``kubectl gpu submit --from``: another job with the spec of one that is there."""

from typing import Any

import pytest
import yaml
from tests.unit.cli.node_objects import GPUJOBS
from tests.unit.cli.objects_server import Objects
from tests.unit.cli.use_cluster import Call, only_one_namespace
from tests.unit.cli.use_objects import job

from gpu_scheduler.cli.submission.copied import copied, what_changed

COPY = ("submit", "finetune-2", "--from", "finetune")
MADE = """\
apiVersion: gpu-scheduler.io/v1alpha1
kind: GPUJob
metadata:
  namespace: team-a
  labels:
    team: a
  name: finetune-2
spec:
  image: finetune:1
  resources:
    requests:
      cpu: '4'
      memory: 16Gi
  gpu: 0.4
"""


def test_the_spec_is_copied_and_flags_beat_it(call: Call) -> None:
    result = call(*COPY, "-g", "0.4", "--dry-run=client", "-o", "yaml")
    assert (result.exit_code, result.stdout) == (0, MADE)
    assert result.stderr == "finetune-2 is finetune with other gpu (1 → 0.4)\n"


def test_a_tenant_may_copy_a_job_of_its_namespace(call: Call, objects: Objects) -> None:
    only_one_namespace(objects)
    assert call(*COPY, "-g", "0.4", "--dry-run=client", "-o", "yaml").stdout == MADE


def test_it_is_created_in_the_same_namespace(call: Call, objects: Objects) -> None:
    result = call(*COPY)
    assert result.stdout == "gpujob.gpu-scheduler.io/finetune-2 created\n"
    assert result.stderr == "finetune-2 is finetune with another name alone\n"
    ((path, body),) = objects.created
    assert path == "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs"
    assert body["metadata"] == {
        "namespace": "team-a",
        "labels": {"team": "a"},
        "name": "finetune-2",
    }


def test_one_that_ended_and_was_suspended_once_is_copied_too(call: Call, objects: Objects) -> None:
    objects.lists[GPUJOBS] = [job("finetune", "Failed", suspend=True, args=["--epochs", "3"])]
    result = call(*COPY, "--memory", "8Gi", "--dry-run=client", "-o", "yaml", "--", "--epochs", "9")
    spec = yaml.safe_load(result.stdout)["spec"]
    assert spec["args"] == ["--epochs", "9"] and "suspend" not in spec
    assert result.stderr == (
        "finetune-2 is finetune with other resources.requests.memory (16Gi → 8Gi), args\n"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("finetune", "--from", "finetune"), 2, "kubectl gpu retry finetune"),
        (("new", "--from", "finetune", "-f", "x.yaml"), 2, "say one of them"),
        (("new", "--from", "deploy/server"), 2, "a GPUJob is copied"),
        (("--from", "finetune"), 2, "NAME is missing"),
        (("new", "--from", "nothing"), 1, "of a deleted one no spec is kept"),
        (("new", "--from", "finetune", "-g", "1.5"), 2, "--gpu: "),
    ],
)
def test_what_cannot_be_copied_is_one_line(
    call: Call, words: tuple[str, ...], code: int, said: str
) -> None:
    result = call("submit", *words, "--dry-run=client")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (code, "", 1)
    assert said in result.stderr


def test_labels_and_annotations_of_ours_and_owners_stay_behind() -> None:
    body: dict[str, Any] = job("old")
    body["metadata"]["annotations"] = {
        "gpu-scheduler.io/checkpointed-at": "x",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "note": "mine",
    }
    found = copied(body)
    assert found["metadata"] == {
        "namespace": "team-a",
        "labels": {"team": "a"},
        "annotations": {"note": "mine"},
    }
    assert "status" not in found


def test_long_values_are_named_and_not_shown() -> None:
    old, new = job("old", image="a" * 60), job("new", image="b" * 60, priority=7)
    assert what_changed(old, new) == "new is old with other image, priority (none → 7)"
