"""Our own decisions until the API server tells of them, and who waits for one."""

from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_place,
    make_pod,
)
from tests.unit.state.worlds import facts, free, make_world, waiting

from gpu_scheduler.core.model.request import PodUID, ProjectName

POD = PodUID("uid-job-0")
NVIDIA = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]


# --- our own decisions ---


def test_an_assumed_pod_counts_at_once_and_waits_no_more() -> None:
    world = make_world(make_pod())
    world.assume(make_place())
    assert (free(world), waiting(world)) == ([500, 1000], {})
    assert world.snapshot().free_cpu_milli == [63_000]
    assert world.snapshot().allocated_milli == {"team-a": 500}


def test_the_echo_of_a_decision_is_charged_once_and_is_no_news_to_the_planner() -> None:
    for path in ("bind", "gate"):
        world = make_world(make_pod(path=path))
        world.assume(make_place())
        version = world.version
        after = "bind" if path == "bind" else "other"
        node = "a" if path == "bind" else ""
        echo = make_pod(version=2, path=after, node=node, allocated_node="a", grants=half())
        world.pod_changed(echo)
        assert (free(world), waiting(world), world.assumed) == ([500, 1000], {}, {})
        assert world.version == version


def test_other_news_of_an_assumed_pod_do_not_make_it_wait_again() -> None:
    world = make_world(make_pod())
    world.assume(make_place())
    world.pod_changed(make_pod(version=2))
    assert (free(world), waiting(world)) == ([500, 1000], {})


def test_a_decision_that_failed_is_taken_back() -> None:
    world = make_world(make_pod())
    before = facts(world)
    version = world.version
    world.assume(make_place())
    world.forget(POD, make_pod())
    assert facts(world) == before
    assert world.version > version


def test_a_pod_that_changed_while_it_was_assumed_waits_as_it_is_now() -> None:
    world = make_world(make_pod(version=1))
    world.assume(make_place())
    world.pod_changed(make_pod(version=2, cpu="3"))
    world.forget(POD, make_pod(version=2, cpu="3"))
    (job,) = world.waiting_jobs()
    assert job.pods[0].shape.cpu_milli == 3000


def test_a_decision_about_a_pod_that_is_gone_is_taken_back() -> None:
    world = make_world()
    before = facts(world)
    world.pod_changed(make_pod())
    world.assume(make_place())
    world.forget(POD, None)
    assert facts(world) == before


def test_an_assumed_pod_that_is_deleted_gives_back_and_forgetting_it_is_harmless() -> None:
    world = make_world()
    before = facts(world)
    world.pod_changed(make_pod())
    world.assume(make_place())
    world.pod_gone(POD)
    assert facts(world) == before
    world.forget(POD, make_pod())
    assert facts(world) == before


def test_an_assumed_pod_that_has_ended_gives_back() -> None:
    world = make_world(make_pod())
    world.assume(make_place())
    world.pod_changed(make_pod(version=2, phase="Failed"))
    assert (free(world), world.assumed, waiting(world)) == ([1000, 1000], {}, {})


def test_a_confirmed_decision_cannot_be_taken_back() -> None:
    world = make_world(make_pod())
    world.assume(make_place())
    world.pod_changed(make_pod(version=2, node="a", grants=half()))
    world.forget(POD, make_pod())
    assert free(world) == [500, 1000]


# --- who waits ---


def test_jobs_that_must_not_start_do_not_wait() -> None:
    for job in (make_gpujob(suspend=True), make_gpujob(deleting=True), make_gpujob(gpu=1.5)):
        world = make_world(make_pod())
        world.gpujob_changed(job)
        assert waiting(world) == {}


def test_a_namespace_without_a_project_does_not_wait() -> None:
    world = make_world(make_pod())
    world.project_gone(ProjectName("team-a"))
    assert waiting(world) == {}


def test_a_changed_request_changes_what_waits() -> None:
    world = make_world(make_pod())
    assert world.waiting_jobs()[0].pods[0].shape.nominal_milli == 500
    world.gpujob_changed(make_gpujob(gpu=0.25, generation=2))
    assert world.waiting_jobs()[0].pods[0].shape.nominal_milli == 250


def test_pods_of_an_earlier_gpujob_of_the_same_name_are_not_the_new_ones() -> None:
    """kubectl replace --force: the old Job and its pods go a little later."""
    world = make_world(make_pod("old-0"), make_pod("old-1", node="a", grants=half()))
    world.gpujob_gone(make_gpujob().key)
    new = make_gpujob(uid="new-uid", gpu=0.1)
    world.gpujob_changed(new)
    assert waiting(world) == {}
    assert list(world.records(new.key)) == []
    assert free(world) == [500, 1000]  # but what they hold, they hold
    world.job_changed(make_job(uid="new-job", owner_uid="new-uid"))
    world.pod_changed(make_pod("new-0", job="new-job"))
    assert waiting(world) == {"team-a/job": ["new-0"]}
    assert [pod.name for pod in world.records(new.key)] == ["new-0"]


def test_pods_of_a_job_that_is_gone_do_not_start() -> None:
    world = make_world(make_pod())
    world.job_gone("job-uid")
    assert waiting(world) == {}
    world.pod_gone(POD)
    assert len(world.waiting) == 0


def test_a_pod_that_its_job_released_is_no_longer_the_jobs() -> None:
    """The Job controller lets go of a pod whose labels somebody changed."""
    world = make_world(make_pod("job-0"), make_pod("job-1", index=1))
    world.pod_changed(make_pod("job-0", job=None, version=2))
    key = make_gpujob().key
    assert waiting(world) == {"team-a/job": ["job-1"]}
    assert [pod.name for pod in world.records(key)] == ["job-1"]
    world.pod_gone(POD)
    assert [pod.name for pod in world.records(key)] == ["job-1"]
    assert waiting(world) == {"team-a/job": ["job-1"]}


def test_whose_status_may_have_changed() -> None:
    key = make_gpujob().key
    world = make_world(make_pod())
    for change in (
        lambda: world.pod_changed(make_pod(version=2, node="a", grants=half())),
        lambda: world.job_changed(make_job(version=2, succeeded=1)),
        lambda: world.pod_gone(POD),
        lambda: world.job_gone("job-uid"),
        lambda: world.gpujob_changed(make_gpujob(generation=2)),
        lambda: world.project_gone(ProjectName("team-a")),
    ):
        world.touched.clear()
        change()
        assert key in world.touched
