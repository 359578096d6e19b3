"""Clusters after reports of users of other schedulers: what starts where, what the rest waits for.

The files say whose report each is after, and what is expected.
"""

from datetime import UTC, datetime
from pathlib import Path

import yaml

from gpu_scheduler.simulate.cluster_command import ClusterRequest, simulate_objects
from gpu_scheduler.simulate.cluster_objects import Objects
from gpu_scheduler.simulate.cluster_report import ClusterReport

FIELD = Path(__file__).parents[2] / "fixtures" / "field"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def field(name: str) -> ClusterReport:
    """What a file's GPUJobs would do on its nodes, beside its pods."""
    objects, jobs = Objects(), []
    for body in yaml.safe_load_all((FIELD / f"{name}.yaml").read_text()):
        body["metadata"]["uid"] = f"uid-{body['metadata']['name']}"
        body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        if body["kind"] == "Node":
            body["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        if body["kind"] == "GPUJob":
            jobs.append(body)
        else:
            objects.put(body["kind"], body)
    for job in jobs:
        objects.put("GPUJob", job)
    return simulate_objects(ClusterRequest(), objects, "https://example", "team-a", NOW)


def test_pods_that_ask_for_what_few_nodes_have_go_there_alone() -> None:
    report = field("resources-on-some-nodes")
    assert [start["node"] for start in report.starts] == ["ib1", "ib1"]
    (wait,) = report.waits
    assert wait["reason"] == "WaitingForResources"
    assert wait["message"] == (
        "needs 2 GPUs; room on ib1 is reserved for it; GPUs are free there, others hold "
        "1 rdma/hca of what it needs"
    )


def test_a_pod_that_is_being_resized_holds_what_it_still_has() -> None:
    report = field("resized-in-place")
    (wait,) = report.waits
    assert (report.starts, wait["reason"]) == ([], "WaitingForResources")
    assert "lacks CPU (needs 12, 8 free)" in wait["message"]


def test_a_label_that_is_missing_is_named_to_who_waits_for_its_gpus() -> None:
    report = field("no-memory-label")
    assert {wait["reason"] for wait in report.waits} == {"Unsatisfiable"}
    for wait in report.waits:
        assert (
            "no node lists a GPU; gb10 has 1 GPU and no label nvidia.com/gpu.memory"
            in (wait["message"])
        )


def test_slices_of_gpus_are_no_gpus_and_time_slices_are() -> None:
    report = field("partitioned-nodes")
    assert [(start["job"], start["node"]) for start in report.starts] == [("team-a/t4", "ts")]
    (wait,) = report.waits
    assert wait["reason"] == "Unsatisfiable"
    assert "mig has MIG enabled" in wait["message"]


def test_as_many_requests_in_mib_start_as_their_mib_fit() -> None:
    report = field("memory-sum-exact")
    assert len(report.starts) == 23
    (wait,) = report.waits
    assert wait["message"].startswith("needs 2000 MiB of a GPU; ")
