"""The pod that a Job would make next, whatever its template says."""

from typing import Any

import pytest

from gpu_scheduler.jobs.next_pod import UnreadableError, next_pod


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
    ("spec", "field"),
    [
        ({"containers": "none"}, "spec.containers"),
        ({"containers": [7]}, "spec.containers[0]"),
        ({"containers": [{"name": "main", "resources": []}]}, "spec.containers[0].resources"),
        (
            {"containers": [{"name": "main", "resources": {"requests": ["cpu"]}}]},
            "spec.containers[0].resources.requests",
        ),
        ({"tolerations": {"key": 1}}, "spec.tolerations"),
        ({"affinity": {"nodeAffinity": 3}}, "spec.affinity.nodeAffinity"),
        ({"nodeSelector": ["a"]}, "spec.nodeSelector"),
        ({"nodeSelector": {"fast": True}}, "spec.nodeSelector"),
        ({"resources": 5}, "spec.resources"),
        ({"overhead": "much"}, "spec.overhead"),
    ],
)
def test_what_cannot_be_read_is_no_pod_and_says_where(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        next_pod(job(**spec))
    assert caught.value.problem.field.startswith(field)


def test_a_label_that_is_no_text_is_none_of_a_pod() -> None:
    bad = job()
    bad["spec"]["template"]["metadata"]["labels"]["version"] = 1
    with pytest.raises(UnreadableError, match=r"metadata.labels\[version\]"):
        next_pod(bad)


def test_null_is_what_the_api_server_reads_it_as() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [None, "a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = next_pod(
        job(
            initContainers=None,
            overhead=None,
            resources=None,
            nodeSelector={"bare": None},
            tolerations=[{"operator": "Exists", "key": None}],
            affinity={"nodeAffinity": required, "podAffinity": None},
            containers=[{"name": "main", "args": None, "resources": {"limits": {"cpu": None}}}],
        )
    )
    assert pod.spec.node_selector == {"bare": ""}
    assert [each.key for each in pod.spec.tolerations] == [""]
    assert pod.spec.containers[0].resources.requests == {"cpu": "0"}
    required_nodes = pod.spec.required_nodes
    assert required_nodes is not None
    (requirement,) = required_nodes.node_selector_terms[0].match_expressions
    assert list(requirement.values) == ["", "a"]
