"""The pod that a Job would make next, whatever its template says."""

from typing import Any

import pytest

from gpu_scheduler.jobs.next_pod import next_pod


def job(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "train"}}, "spec": spec}
    return {"metadata": {"name": "job", "namespace": "team-a"}, "spec": {"template": template}}


def test_requests_default_to_limits_and_numbers_are_quantities() -> None:
    resources = {"limits": {"cpu": 2, "memory": "4Gi"}, "requests": {"cpu": 0.5}}
    pod = next_pod(job(containers=[{"name": "main", "resources": resources}]))
    assert pod.spec.containers[0].resources.requests == {"cpu": "0.5", "memory": "4Gi"}


def test_it_has_the_labels_that_the_job_controller_adds() -> None:
    labels = next_pod(job()).metadata.labels
    assert labels == {
        "app": "train",
        "job-name": "job",
        "batch.kubernetes.io/job-name": "job",
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "none"},
        {"containers": [7]},
        {"containers": [{"name": "main", "resources": []}]},
        {"containers": [{"name": "main", "resources": {"requests": ["cpu"]}}]},
        {"tolerations": {"key": 1}},
        {"affinity": {"nodeAffinity": 3}},
        {"nodeSelector": ["a"]},
        {"initContainers": None, "overhead": None, "resources": None},
        {"resources": 5, "overhead": "much"},
    ],
)
def test_what_cannot_be_read_asks_for_nothing(spec: dict[str, Any]) -> None:
    pod = next_pod(job(**spec))
    assert pod.metadata.name == "job"
    assert not any(each.resources.requests for each in pod.spec.containers)
