"""What consolidation has to know of pods that run; none of it is lost with the leader."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import msgspec
import pytest
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)

from gpu_scheduler.api import moved
from gpu_scheduler.api.names import MOVED_PREFIX
from gpu_scheduler.core.actions.consolidation import REST_SECONDS
from gpu_scheduler.core.model.request import PodShape, PodUID
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.jobs.evict import mark_moved
from gpu_scheduler.jobs.place import Pin, place
from gpu_scheduler.kube.objects import Job, Meta, Pod
from gpu_scheduler.state.cluster_state import ClusterState

AT = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
REPLACE = msgspec.structs.replace


def make_cluster_state(consolidation: bool = True) -> ClusterState:
    state = ClusterState(consolidation=consolidation)
    state.nodes.changed(make_node("a"))
    state.project_changed(make_project())
    return state


def known(state: ClusterState) -> ClusterState:
    state.gpujob_changed(make_gpujob(gpuModels=["A100"], minComputeCapability="7.5"))
    state.job_changed(make_job())
    return state


def placed(pod: Pod, pin: Pin = Pin.AFFINITY) -> Pod:
    """The pod as the API server shows it after the write that places it."""
    write = place(pod, "a", half(), pin=pin, hostname="a")
    shown = msgspec.to_builtins(pod)
    shown["metadata"]["annotations"] |= write.body["metadata"]["annotations"]
    shown["metadata"]["resourceVersion"] = "9"
    if write.path.endswith("/binding"):
        shown["spec"]["nodeName"] = "a"
        return msgspec.convert(shown, Pod)
    spec = dict(write.body["spec"])
    spec.pop("schedulingGates")
    shown["spec"]["schedulingGates"] = []
    shown["spec"]["nodeSelector"] = shown["spec"].get("nodeSelector", {}) | spec.get(
        "nodeSelector", {}
    )
    shown["spec"] |= {key: value for key, value in spec.items() if key != "nodeSelector"}
    return msgspec.convert(shown, Pod)


def wants(pod: Pod, *terms: dict[str, Any]) -> Pod:
    """The pod with a required node affinity of its own."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    shown = msgspec.to_builtins(pod)
    shown["spec"]["affinity"] = {"nodeAffinity": required}
    return msgspec.convert(shown, Pod)


def asked(pod: Pod) -> PodShape:
    """What the planner sees of the pod while it waits."""
    state = known(make_cluster_state())
    state.pod_changed(pod)
    (job,) = state.waiting_jobs()
    return job.pods[0].pod_shape


def running_pod(state: ClusterState, uid: str = "uid-job-0") -> RunningPod:
    found = state.running_pods.get(PodUID(uid))
    assert found is not None
    return found


ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
NODES = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}


@pytest.mark.parametrize("path", ["bind", "gate"])
@pytest.mark.parametrize("terms", [(), (ZONE,), (ZONE, NODES), (ZONE | NODES,), ({}, ZONE)])
def test_a_new_leader_knows_what_a_pod_asked_for_before_it_was_placed(
    path: str, terms: tuple[dict[str, Any], ...]
) -> None:
    waiting = make_pod(path=path)
    waiting = wants(waiting, *terms) if terms else waiting
    state = known(make_cluster_state())
    state.pod_changed(placed(waiting))
    pod_shape = running_pod(state).pod_shape
    assert pod_shape == asked(waiting)
    assert (
        pod_shape is not None and pod_shape.models == ("a100",) and pod_shape.min_compute == (7, 5)
    )


def test_it_does_not_matter_what_of_it_a_new_leader_sees_first() -> None:
    steps: list[Callable[[ClusterState], object]] = [
        lambda state: state.gpujob_changed(make_gpujob()),
        lambda state: state.job_changed(marked(make_job(), "uid-before")),
        lambda state: state.pod_changed(placed(make_pod())),
    ]
    found = []
    for order in permutations(steps):
        state = make_cluster_state()
        for step in order:
            step(state)
        found.append((running_pod(state).pod_shape, running_pod(state).moved))
    assert found[0][0] is not None and found[0][1] == AT.timestamp()
    assert found == found[:1] * len(found)


def test_a_leader_that_saw_the_pod_wait_knows_it_without_the_pin_by_hostname() -> None:
    waiting = make_pod(path="gate")
    known_before, new = known(make_cluster_state()), known(make_cluster_state())
    known_before.pod_changed(waiting)
    for state in (known_before, new):
        state.pod_changed(placed(waiting, Pin.HOSTNAME))
    assert running_pod(known_before).pod_shape == asked(waiting)
    pod_shape = running_pod(new).pod_shape  # it could be the user's own selector, and is kept
    assert pod_shape is not None and pod_shape.where.selector == (("kubernetes.io/hostname", "a"),)


def test_nothing_is_kept_where_consolidation_is_off() -> None:
    state = known(make_cluster_state(consolidation=False))
    state.job_changed(marked(make_job(version=2), "uid-before"))
    state.pod_changed(placed(make_pod()))
    assert (running_pod(state).pod_shape, running_pod(state).moved) == (None, 0.0)


def marked(job: Job, pod: str, index: int = 0, at: datetime = AT) -> Job:
    """The Job as it is after the write that marks a move."""
    write = mark_moved(Meta(name="job", namespace="team-a", uid="job-uid"), index, pod, at, [])  # type: ignore[arg-type]
    told = dict(write.body["metadata"]["annotations"])
    return REPLACE(job, metadata=REPLACE(job.metadata, annotations=job.metadata.annotations | told))


def test_the_pod_that_takes_the_place_of_one_that_moved_counts_as_moved() -> None:
    state = known(make_cluster_state())
    state.job_changed(marked(make_job(version=2), "uid-before"))
    state.pod_changed(placed(make_pod()))
    state.pod_changed(placed(make_pod("job-1", index=1)))
    assert running_pod(state).moved == AT.timestamp()
    assert running_pod(state, "uid-job-1").moved == 0.0


def test_a_pod_that_was_marked_and_is_still_there_has_not_moved() -> None:
    state = known(make_cluster_state())
    state.pod_changed(placed(make_pod()))
    state.job_changed(marked(make_job(version=2), "uid-job-0"))
    assert running_pod(state).moved == 0.0


def test_a_mark_that_comes_after_the_pod_counts_as_well() -> None:
    state = known(make_cluster_state())
    state.pod_changed(placed(make_pod()))
    state.job_changed(marked(make_job(version=2), "uid-before"))
    assert running_pod(state).moved == AT.timestamp()


def test_a_mark_that_changes_is_a_reason_to_plan_again_and_a_status_is_none() -> None:
    state = known(make_cluster_state())
    state.job_changed(marked(make_job(version=2), "uid-before"))
    marked_at = state.changes.version
    state.job_changed(marked(make_job(version=3, succeeded=1), "uid-before"))
    assert state.changes.version == marked_at
    state.job_changed(make_job(version=4))  # the hour is over, the mark is taken away
    assert state.changes.version > marked_at


def test_a_decision_counts_before_its_mark_is_seen() -> None:
    state = known(make_cluster_state())
    state.pod_changed(placed(make_pod()))
    state.running_pods.moves.decided(state.pods.known[PodUID("uid-job-0")], 500.0)
    state.pod_changed(placed(make_pod("job-0-again")))
    assert running_pod(state, "uid-job-0-again").moved == 500.0
    assert running_pod(state).moved == 0.0


def test_decisions_are_forgotten_when_they_no_longer_matter() -> None:
    state = known(make_cluster_state())
    for name, index, at in (("job-0", 0, 500.0), ("job-1", 1, 500.0 + REST_SECONDS)):
        state.pod_changed(placed(make_pod(name, index=index)))
        state.running_pods.moves.decided(state.pods.known[PodUID(f"uid-{name}")], at)
    state.pod_changed(placed(make_pod("job-0-again")))
    assert running_pod(state, "uid-job-0-again").moved == 0.0


@pytest.mark.parametrize("text", ["", "yesterday uid-x", "2026-01-01T12:00:00 uid-x"])
def test_marks_that_we_did_not_write_are_passed_over(text: str) -> None:
    assert moved.marks({moved.annotation(0): text}) == {}
    assert moved.marks({f"{MOVED_PREFIX}x": "2026-01-01T12:00:00Z uid-x"}) == {}
