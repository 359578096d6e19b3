"""Our own decisions until the API server tells of them, and who waits for one."""

from tests.unit.state.builders import (
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_pod,
)
from tests.unit.state.cluster_states import facts, free, make_cluster_state, waiting

from gpu_scheduler.core.model.request import PodUID, ProjectName

POD = PodUID("uid-job-0")
NVIDIA = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]


# --- our own decisions ---


def test_an_assumed_pod_counts_at_once_and_waits_no_more() -> None:
    state = make_cluster_state(make_pod())
    state.decisions.assume(make_assignment())
    assert (free(state), waiting(state)) == ([500, 1000], {})
    assert state.snapshot().free_cpu_milli == [63_000]
    assert state.snapshot().allocated_milli == {"team-a": 500}


def test_the_echo_of_a_decision_is_charged_once_and_is_no_news_to_the_planner() -> None:
    for path in ("bind", "gate"):
        state = make_cluster_state(make_pod(path=path))
        state.decisions.assume(make_assignment())
        version = state.changes.version
        after = "bind" if path == "bind" else "other"
        node = "a" if path == "bind" else ""
        echo = make_pod(version=2, path=after, node=node, allocated_node="a", devices=half())
        state.pod_changed(echo)
        assert (free(state), waiting(state), state.decisions.assumed) == ([500, 1000], {}, {})
        assert state.changes.version == version


def test_other_news_of_an_assumed_pod_do_not_make_it_wait_again() -> None:
    state = make_cluster_state(make_pod())
    state.decisions.assume(make_assignment())
    state.pod_changed(make_pod(version=2))
    assert (free(state), waiting(state)) == ([500, 1000], {})


def test_a_decision_that_failed_is_taken_back() -> None:
    state = make_cluster_state(make_pod())
    before = facts(state)
    version = state.changes.version
    state.decisions.assume(make_assignment())
    state.forget(POD, make_pod())
    assert facts(state) == before
    assert state.changes.version > version


def test_a_pod_that_changed_while_it_was_assumed_waits_as_it_is_now() -> None:
    state = make_cluster_state(make_pod(version=1))
    state.decisions.assume(make_assignment())
    state.pod_changed(make_pod(version=2, cpu="3"))
    state.forget(POD, make_pod(version=2, cpu="3"))
    (job,) = state.waiting_jobs()
    assert job.pods[0].pod_shape.cpu_milli == 3000


def test_a_decision_about_a_pod_that_is_gone_is_taken_back() -> None:
    state = make_cluster_state()
    before = facts(state)
    state.pod_changed(make_pod())
    state.decisions.assume(make_assignment())
    state.forget(POD, None)
    assert facts(state) == before


def test_an_assumed_pod_that_is_deleted_gives_back_and_forgetting_it_is_harmless() -> None:
    state = make_cluster_state()
    before = facts(state)
    state.pod_changed(make_pod())
    state.decisions.assume(make_assignment())
    state.pod_gone(POD)
    assert facts(state) == before
    state.forget(POD, make_pod())
    assert facts(state) == before


def test_an_assumed_pod_that_has_ended_gives_back() -> None:
    state = make_cluster_state(make_pod())
    state.decisions.assume(make_assignment())
    state.pod_changed(make_pod(version=2, phase="Failed"))
    assert (free(state), state.decisions.assumed, waiting(state)) == ([1000, 1000], {}, {})


def test_a_confirmed_decision_cannot_be_taken_back() -> None:
    state = make_cluster_state(make_pod())
    state.decisions.assume(make_assignment())
    state.pod_changed(make_pod(version=2, node="a", devices=half()))
    state.forget(POD, make_pod())
    assert free(state) == [500, 1000]


# --- who waits ---


def test_jobs_that_must_not_start_do_not_wait() -> None:
    for job in (make_gpujob(suspend=True), make_gpujob(deleting=True), make_gpujob(gpu=1.5)):
        state = make_cluster_state(make_pod())
        state.gpujob_changed(job)
        assert waiting(state) == {}


def test_a_namespace_without_a_project_does_not_wait() -> None:
    state = make_cluster_state(make_pod())
    state.project_gone(ProjectName("team-a"))
    assert waiting(state) == {}


def test_a_changed_request_changes_what_waits() -> None:
    state = make_cluster_state(make_pod())
    assert state.waiting_jobs()[0].pods[0].pod_shape.nominal_milli == 500
    state.gpujob_changed(make_gpujob(gpu=0.25, generation=2))
    assert state.waiting_jobs()[0].pods[0].pod_shape.nominal_milli == 250


def test_pods_of_an_earlier_gpujob_of_the_same_name_are_not_the_new_ones() -> None:
    """kubectl replace --force: the old Job and its pods go a little later."""
    state = make_cluster_state(make_pod("old-0"), make_pod("old-1", node="a", devices=half()))
    state.gpujob_gone(make_gpujob().key)
    new = make_gpujob(uid="new-uid", gpu=0.1)
    state.gpujob_changed(new)
    assert waiting(state) == {}
    assert list(state.workloads.pods(new.key)) == []
    assert free(state) == [500, 1000]  # but what they hold, they hold
    state.job_changed(make_job(uid="new-job", owner_uid="new-uid"))
    state.pod_changed(make_pod("new-0", job="new-job"))
    assert waiting(state) == {"team-a/job": ["new-0"]}
    assert [pod.name for pod in state.workloads.pods(new.key)] == ["new-0"]


def test_pods_of_a_job_that_is_gone_do_not_start() -> None:
    state = make_cluster_state(make_pod())
    state.job_gone("job-uid")
    assert waiting(state) == {}
    state.pod_gone(POD)
    assert len(state.waiting) == 0


def test_a_pod_that_its_job_released_is_no_longer_the_jobs() -> None:
    """The Job controller lets go of a pod whose labels somebody changed."""
    state = make_cluster_state(make_pod("job-0"), make_pod("job-1", index=1))
    state.pod_changed(make_pod("job-0", job=None, version=2))
    key = make_gpujob().key
    assert waiting(state) == {"team-a/job": ["job-1"]}
    assert [pod.name for pod in state.workloads.pods(key)] == ["job-1"]
    state.pod_gone(POD)
    assert [pod.name for pod in state.workloads.pods(key)] == ["job-1"]
    assert waiting(state) == {"team-a/job": ["job-1"]}


def test_whose_status_may_have_changed() -> None:
    key = make_gpujob().key
    state = make_cluster_state(make_pod())
    for change in (
        lambda: state.pod_changed(make_pod(version=2, node="a", devices=half())),
        lambda: state.job_changed(make_job(version=2, succeeded=1)),
        lambda: state.pod_gone(POD),
        lambda: state.job_gone("job-uid"),
        lambda: state.gpujob_changed(make_gpujob(generation=2)),
        lambda: state.project_gone(ProjectName("team-a")),
    ):
        state.changes.touched.clear()
        change()
        assert key in state.changes.touched
