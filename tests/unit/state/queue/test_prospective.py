"""Pods that a GPUJob asks for and that do not exist: how many, and what becomes of their places."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)
from tests.unit.state.cluster_states import free

from gpu_scheduler.core.model.decision import Assignment, DeviceAllocation
from gpu_scheduler.core.model.request import JobKey, PodUID, WaitingJob
from gpu_scheduler.kube.objects import Meta, Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.pods.pod import Stage

KEY = JobKey("team-a/job")


def accepted(**spec: Any) -> ClusterState:
    """Node a with two GPUs, and a GPUJob that may be planned."""
    state = ClusterState()
    state.nodes.changed(make_node("a"))
    state.project_changed(make_project())
    job = make_gpujob(**spec)
    state.gpujob_changed(job)
    template = Pod(Meta(name="job", namespace="team-a"))
    state.accept(job, dict.fromkeys(job.requests, template))
    return state


def waiting(state: ClusterState) -> WaitingJob:
    (job,) = state.waiting_jobs()
    return job


def pods(state: ClusterState) -> int:
    return sum(len(job.pods) for job in state.waiting_jobs())


def place(state: ClusterState, *, devices: tuple[DeviceAllocation, ...] = ()) -> Assignment:
    """The first pod that waits has a place."""
    found = Assignment(KEY, waiting(state).pods[0].uid, "a", devices or half())
    state.decisions.assume(found)
    return found


def test_a_job_waits_with_all_its_pods_before_any_object_is_made() -> None:
    state = accepted(parallelism=3, completions=8)
    assert pods(state) == 3
    assert {pod.pod_shape.nominal_milli for pod in waiting(state).pods} == {500}


def test_nothing_waits_before_it_is_accepted_nor_once_it_is_suspended_wrong_or_over() -> None:
    for spec in ({"suspend": True}, {"status": {"phase": "Succeeded"}}):
        assert pods(accepted(**spec)) == 0, spec
    state = accepted()
    state.gpujobs[KEY].problem = "spec.gpu: wrong"
    assert pods(state) == 0
    fresh = ClusterState()
    fresh.project_changed(make_project())
    fresh.gpujob_changed(make_gpujob())
    assert pods(fresh) == 0


def test_what_a_job_makes_by_itself_is_not_prospective() -> None:
    state = accepted(parallelism=4, completions=8)
    state.job_changed(make_job(parallelism=3, completions=8))
    assert pods(state) == 1, "three come without another write"
    state.pod_changed(make_pod("job-0", node="a", devices=half(), phase="Running"))
    assert pods(state) == 1
    state.job_changed(make_job(parallelism=3, completions=8, succeeded=6, version=2))
    assert pods(state) == 0, "two are left, and the Job makes them"


def test_a_suspended_job_makes_none() -> None:
    state = accepted(parallelism=4, completions=8)
    state.job_changed(make_job(parallelism=4, completions=8, suspend=True))
    assert pods(state) == 4


def test_pods_of_a_job_that_is_being_deleted_have_to_go_first() -> None:
    state = accepted(parallelism=1, completions=1)
    state.job_changed(make_job(deleting=True))
    state.pod_changed(make_pod("job-0", node="a", devices=half(), phase="Running"))
    assert pods(state) == 0
    state.pod_gone(PodUID("uid-job-0"))
    assert pods(state) == 1


def test_a_job_of_a_hundred_thousand_does_not_make_the_planner_look_at_as_many() -> None:
    state = accepted(parallelism=100_000, gpu=1)
    assert pods(state) == 2 + 20
    state.nodes.changed(make_node("b"))
    assert pods(state) == 4 + 20
    state.project_changed(make_project(limit_milli=1000))
    assert pods(state) == 1 + 20


def test_a_gang_is_looked_at_whole_however_large_it_is() -> None:
    assert pods(accepted(parallelism=500, gpu=1, gang=True)) == 500


def test_the_members_of_a_gang_are_those_of_its_indexes_that_have_no_pod() -> None:
    state = accepted(parallelism=4, gpu=0.5, gang=True)
    done = make_job(parallelism=1, completions=4, succeeded=1, completed_indexes="1")
    state.job_changed(done)
    state.pod_changed(make_pod("job-0", index=0, node="a", devices=half(), phase="Running"))
    found = [state.waiting.prospective(pod.uid) for pod in waiting(state).pods]
    assert [pod.index for pod in found if pod is not None] == [2, 3]
    assert waiting(state).gang is not None and waiting(state).gang.missing == 2


def test_members_of_a_gang_that_are_made_wait_until_all_are_or_none_is() -> None:
    state = accepted(parallelism=4, gang=True)
    state.job_changed(make_job(parallelism=1, completions=4))
    state.pod_changed(make_pod("job-0"))
    assert pods(state) == 1 and waiting(state).gang.missing == 4  # type: ignore[union-attr]


def test_a_place_is_charged_before_its_pod_exists_and_given_back_whole() -> None:
    state = accepted(parallelism=2)
    place(state)
    assert (free(state), pods(state)) == ([500, 1000], 1)
    assert [each.parallelism for each in state.decisions.nominated.of(KEY)] == [1]
    place(state, devices=half("1"))
    assert [each.parallelism for each in state.decisions.nominated.of(KEY)] == [1, 2]
    assert (free(state), pods(state)) == ([500, 500], 0)
    assert state.decisions.give_back(KEY)
    assert (free(state), pods(state)) == ([1000, 1000], 2)
    assert not state.decisions.nominated.of(KEY) and not state.decisions.assumed


def test_what_a_job_was_told_to_make_is_not_planned_twice() -> None:
    state = accepted(parallelism=2)
    place(state)
    for each in state.decisions.nominated.of(KEY):
        each.asked = True
    state.job_changed(make_job(parallelism=1, completions=2))
    assert pods(state) == 1


def test_a_job_that_is_shown_before_its_answer_comes_counts_once() -> None:
    state = accepted(parallelism=3)
    place(state)
    place(state, devices=half("1"))
    state.job_changed(make_job(parallelism=2, completions=3))
    assert pods(state) == 1
    place(state)
    assert [each.parallelism for each in state.decisions.nominated.of(KEY)] == [1, 2, 3]


def test_who_waits_stays_the_same_while_others_come() -> None:
    state = accepted(parallelism=2)
    place(state)
    (second,) = waiting(state).pods
    state.job_changed(make_job(parallelism=1, completions=2))
    assert [pod.uid for pod in waiting(state).pods] == [second.uid], "its Job was told of one"
    state.pod_changed(make_pod("job-0"))
    nominated = state.decisions.nominated.whose_place(KEY, "", 0)
    assert (
        nominated is not None
        and state.decisions.take_place(nominated, PodUID("uid-job-0")) is not None
    )
    assert [pod.uid for pod in waiting(state).pods] == [second.uid], "room may be kept for it"


def test_a_pod_takes_the_place_that_was_kept_for_it() -> None:
    state = accepted()
    place(state)
    state.job_changed(make_job())
    state.pod_changed(make_pod("job-0"))
    nominated = state.decisions.nominated.whose_place(KEY, "", 0)
    assert nominated is not None
    taken = state.decisions.take_place(nominated, PodUID("uid-job-0"))
    assert taken == Assignment(KEY, PodUID("uid-job-0"), "a", half())
    assert free(state) == [500, 1000] and pods(state) == 0
    assert not state.decisions.nominated.of(KEY) and set(state.decisions.assumed) == {"uid-job-0"}


def test_a_pod_that_is_not_what_was_planned_and_does_not_fit_waits_like_any_other() -> None:
    state = accepted()
    place(state)
    state.job_changed(make_job())
    state.pod_changed(make_pod("job-0", cpu="65"))  # of 64
    nominated = state.decisions.nominated.whose_place(KEY, "", 0)
    assert nominated is not None
    assert state.decisions.take_place(nominated, PodUID("uid-job-0")) is None
    assert free(state) == [1000, 1000]
    assert [pod.uid for pod in waiting(state).pods] == ["uid-job-0"]


def test_what_the_api_server_adds_to_a_pod_is_planned_with_from_then_on() -> None:
    state = accepted(parallelism=2, completions=2)
    place(state)
    state.job_changed(make_job(parallelism=1, completions=2))
    state.pod_changed(make_pod("job-0", cpu="3"))
    nominated = state.decisions.nominated.whose_place(KEY, "", 0)
    assert nominated is not None
    assert state.decisions.take_place(nominated, PodUID("uid-job-0")) is not None
    (other,) = waiting(state).pods
    assert other.pod_shape.cpu_milli == 3000


def test_places_go_with_what_they_were_planned_for() -> None:
    def changed(state: ClusterState) -> None:
        state.gpujob_changed(make_gpujob(generation=2))

    def gone(state: ClusterState) -> None:
        state.gpujob_gone(KEY)

    def job_gone(state: ClusterState) -> None:
        state.job_changed(make_job())
        state.job_gone("job-uid")

    def inadmissible(state: ClusterState) -> None:
        state.decisions.set_inadmissible(KEY, "refused", True)

    def node_closed(state: ClusterState) -> None:
        state.nodes.changed(make_node("a", cordoned=True))

    for happens in (changed, gone, job_gone, inadmissible, node_closed):
        state = accepted()
        place(state)
        happens(state)
        assert free(state) == [1000, 1000] and not state.decisions.assumed, happens.__name__


def test_a_place_on_a_node_whose_self_test_failed_is_not_taken() -> None:
    gpu = (NodeDevice("0", 0, "NVIDIA-A100-PCIE-40GB", 40960),)
    capped = [{"name": "gpu-scheduler-cap"}]
    for failed, taken in ((("framework",), True), (("interposer",), False)):
        state = accepted()
        state.nodes.reported("a", gpu, {}, failed)
        place(state)
        state.job_changed(make_job())
        state.pod_changed(make_pod("job-0", init_containers=capped))
        nominated = state.decisions.nominated.whose_place(KEY, "", 0)
        assert nominated is not None
        assert (state.decisions.take_place(nominated, PodUID("uid-job-0")) is not None) is taken


def test_two_reasons_why_a_job_is_inadmissible_are_two() -> None:
    state = accepted()
    state.decisions.set_inadmissible(KEY, "refused", True)
    state.decisions.set_inadmissible(KEY, "stays", True)
    state.decisions.set_inadmissible(KEY, "stays", False)
    assert pods(state) == 0
    state.decisions.set_inadmissible(KEY, "refused", False)
    assert pods(state) == 1


def test_while_a_job_becomes_narrower_nothing_of_it_is_placed() -> None:
    state = accepted(parallelism=3, completions=3)
    state.job_changed(make_job(parallelism=2, completions=3))
    state.pod_changed(make_pod("job-0"))
    assert pods(state) == 2
    state.decisions.narrow(state.jobs.believed["job-uid"], 0)
    assert pods(state) == 0
    state.decisions.let_be("job-uid")
    assert pods(state) == 2


def test_a_pod_that_goes_without_ever_having_had_a_place_makes_room_for_another() -> None:
    for ends in (True, False):
        state = accepted(parallelism=2, completions=2)
        state.job_changed(make_job(parallelism=0, completions=2))
        state.pod_changed(make_pod("job-0", deleting=True))
        before = state.changes.version, pods(state)
        if ends:
            state.pod_changed(make_pod("job-0", deleting=True, version=2, phase="Failed"))
        else:
            state.pod_gone(PodUID("uid-job-0"))
        assert state.changes.version > before[0], "the next plan may be another one"
        assert (before[1], pods(state)) == (1, 2)


@given(
    parallelism=st.integers(1, 12),
    completions=st.integers(1, 12),
    of_job=st.integers(0, 12),
    done=st.integers(0, 12),
    live=st.integers(0, 12),
    placed=st.integers(0, 4),
)
def test_never_more_at_once_than_may_be_or_than_are_left(
    parallelism: int, completions: int, of_job: int, done: int, live: int, placed: int
) -> None:
    done = min(done, completions)
    live = min(live, completions - done, parallelism)
    state = accepted(parallelism=parallelism, completions=completions)
    own = make_job(
        parallelism=min(parallelism, of_job),
        completions=completions,
        succeeded=done,
        ended="Complete" if done == completions else "",
    )
    state.job_changed(own)
    for index in range(done, done + live):
        state.pod_changed(make_pod(f"job-{index}", index=index, node="a", phase="Running"))
    for _ in range(min(placed, pods(state))):
        place(state)
    coming = max(live, min(parallelism, of_job, completions - done))
    at_once = min(parallelism, completions - done)
    assert pods(state) + len(state.decisions.nominated.of(KEY)) + coming == max(at_once, coming)
    assert all(pod.stage is not Stage.ENDED for pod in state.workloads.pods(KEY))
