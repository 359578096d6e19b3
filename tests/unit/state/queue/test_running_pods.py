"""Which pods the planner may ask to give way, and what it knows of them."""

from dataclasses import replace

import pytest
from tests.unit.state.builders import (
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_pod,
    make_project,
)
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.queue import running_pods

POD, TEAM = PodUID("uid-job-0"), ProjectName("team-a")
STARTED = "2026-01-01T01:00:00Z"


def running(**settings: object) -> ClusterState:
    pod = make_pod(node="a", devices=half(), phase="Running", startTime=STARTED, **settings)  # type: ignore[arg-type]
    return make_cluster_state(pod)


def only(state: ClusterState) -> RunningPod:
    (found,) = state.running_pods.of(TEAM)
    assert list(state.running_pods.on("a")) == [found]
    return found


def test_a_running_pod_is_known_with_its_jobs_traits() -> None:
    state = running()
    state.gpujob_changed(
        make_gpujob(generation=2, type="interactive", priority=70, timeLimitSeconds=600)
    )
    pod = only(state)
    assert (pod.uid, pod.job, pod.node, pod.devices) == (POD, "team-a/job", "a", half())
    assert (pod.interactive, pod.priority, pod.leaving) == (True, 70, False)
    assert pod.since == epoch_seconds(STARTED)
    assert pod.ends == pod.since + 600
    assert pod.cpu_milli == 1000


def test_waiting_assumed_and_ended_pods_are_none() -> None:
    state = make_cluster_state(make_pod())
    assert list(state.running_pods.of(TEAM)) == []
    state.decisions.assume(make_assignment())
    assert list(state.running_pods.of(TEAM)) == []
    state.pod_changed(make_pod(version=2, node="a", devices=half()))
    assert only(state).uid == POD
    state.pod_changed(make_pod(version=3, node="a", devices=half(), phase="Succeeded"))
    assert list(state.running_pods.of(TEAM)) == []
    assert list(state.running_pods.on("a")) == []


def test_a_pod_that_is_being_deleted_is_leaving() -> None:
    state = running(deleting=True)
    assert [pod.uid for pod in state.running_pods.leaving()] == [POD]
    state.pod_gone(POD)
    assert list(state.running_pods.leaving()) == []


def test_a_decided_eviction_counts_until_it_is_given_up() -> None:
    state = running()
    state.running_pods.set_evicting(POD, True)
    state.pod_changed(make_pod(version=2, node="a", devices=half(), phase="Running"))
    assert only(state).leaving
    state.running_pods.set_evicting(POD, False)
    assert not only(state).leaving


def test_a_pod_seen_before_its_job_is_found_once_that_is_known() -> None:
    state = ClusterState()
    state.pod_changed(make_pod(node="a", devices=half(), phase="Running"))
    state.gpujob_changed(make_gpujob())
    state.job_changed(make_job())
    assert list(state.running_pods.of(TEAM)) == []  # no project yet
    assert [pod.uid for pod in state.running_pods.on("a")] == [POD]
    state.project_changed(make_project())
    assert [pod.uid for pod in state.running_pods.of(TEAM)] == [POD]
    state.project_gone(TEAM)
    assert list(state.running_pods.of(TEAM)) == []


def test_of_a_pod_that_lost_its_job_nobody_knows_the_priority() -> None:
    """None of its project takes its place; what the project borrows is had back all the same."""
    state = running()
    state.gpujob_changed(make_gpujob(generation=2, type="interactive", priority=30))
    lost = make_pod(version=2, node="a", devices=half(), phase="Running", startTime=STARTED, job="")
    state.pod_changed(lost)  # its controller reference was taken off
    pod = only(state)
    assert (pod.uid, pod.devices, pod.since) == (POD, half(), epoch_seconds(STARTED))
    assert (pod.interactive, pod.priority, pod.gang, pod.pod_shape) == (False, 100, False, None)
    assert pod.job not in state.gpujobs and not pod.leaving
    state.pod_changed(make_pod(version=3, node="a", devices=half(), phase="Failed", job=""))
    assert list(state.running_pods.on("a")) == []


def test_an_index_that_gave_way_remembers_for_whom() -> None:
    state = running()
    winner = JobKey("team-a/urgent")
    state.running_pods.gave_way(state.pods.known[POD], winner)
    state.pod_gone(POD)
    state.pod_changed(make_pod("again", uid="again", node="a", devices=half(), phase="Running"))
    assert only(state).lost_to == winner


def test_only_so_many_indexes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_pods, "MOST_REMEMBERED", 2)
    state = running()
    store, pod = state.running_pods, state.pods.known[POD]
    for index in range(4):
        store.gave_way(replace(pod, index=index), JobKey("team-a/urgent"))
    assert [index for _, index in store._lost_to] == [2, 3]


@pytest.mark.parametrize(
    ("said", "lost_seconds"),
    [
        ("", 600),
        ("2026-01-01T01:07:00Z", 180),
        ("2026-01-01T03:07:00+02:00", 180),
        ("2026-01-01T00:00:00Z", 600),  # before it started
        ("2026-01-01T01:10:30Z", 0),  # whose clock is a little ahead
        ("2099-01-01T00:00:00Z", 600),
        ("yesterday", 600),
        pytest.param("9" * 200_000, 600, id="long"),
    ],
)
def test_what_a_pod_would_lose_is_what_it_did_since_its_checkpoint(
    said: str, lost_seconds: int
) -> None:
    annotations = {"gpu-scheduler.io/checkpointed-at": said} if said else {}
    pod = only(running(annotations_=annotations))
    assert isinstance(pod.saved, float), "a number is kept, and not what somebody wrote"
    assert pod.unsaved_milli_seconds(pod.since + 600) == 500 * lost_seconds


def test_a_later_checkpoint_is_taken_over() -> None:
    state = running()
    said = {"gpu-scheduler.io/checkpointed-at": "2026-01-01T01:05:00Z"}
    state.pod_changed(
        make_pod(
            version=2,
            node="a",
            devices=half(),
            phase="Running",
            startTime=STARTED,
            annotations_=said,
        )
    )
    assert only(state).saved == epoch_seconds("2026-01-01T01:05:00Z")
