"""Which pods the planner may ask to give way, and what it knows of them."""

from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_place,
    make_pod,
    make_project,
)
from tests.unit.state.test_world import make_world

from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.state.jobs import epoch_seconds
from gpu_scheduler.state.world import World

POD, TEAM = PodUID("uid-job-0"), ProjectName("team-a")
STARTED = "2026-01-01T01:00:00Z"


def running(**settings: object) -> World:
    pod = make_pod(node="a", grants=half(), phase="Running", startTime=STARTED, **settings)  # type: ignore[arg-type]
    return make_world(pod)


def only(world: World) -> RunningPod:
    (found,) = world.running_pods.of(TEAM)
    assert list(world.running_pods.on("a")) == [found]
    return found


def test_a_running_pod_is_known_with_its_jobs_traits() -> None:
    world = running()
    world.gpujob_changed(
        make_gpujob(generation=2, type="interactive", priority=70, timeLimitSeconds=600)
    )
    pod = only(world)
    assert (pod.uid, pod.job, pod.node, pod.grants) == (POD, "team-a/job", "a", half())
    assert (pod.interactive, pod.priority, pod.leaving) == (True, 70, False)
    assert pod.since == epoch_seconds(STARTED)
    assert pod.ends == pod.since + 600
    assert pod.cpu_milli == 1000


def test_waiting_assumed_and_ended_pods_are_none() -> None:
    world = make_world(make_pod())
    assert list(world.running_pods.of(TEAM)) == []
    world.assume(make_place())
    assert list(world.running_pods.of(TEAM)) == []
    world.pod_changed(make_pod(version=2, node="a", grants=half()))
    assert only(world).uid == POD
    world.pod_changed(make_pod(version=3, node="a", grants=half(), phase="Succeeded"))
    assert list(world.running_pods.of(TEAM)) == []
    assert list(world.running_pods.on("a")) == []


def test_a_pod_that_is_being_deleted_is_leaving() -> None:
    world = running(deleting=True)
    assert [pod.uid for pod in world.running_pods.leaving()] == [POD]
    world.pod_gone(POD)
    assert list(world.running_pods.leaving()) == []


def test_a_decided_eviction_counts_until_it_is_given_up() -> None:
    world = running()
    world.running_pods.set_evicting(POD, True)
    world.pod_changed(make_pod(version=2, node="a", grants=half(), phase="Running"))
    assert only(world).leaving
    world.running_pods.set_evicting(POD, False)
    assert not only(world).leaving


def test_a_pod_seen_before_its_job_is_found_once_that_is_known() -> None:
    world = World()
    world.pod_changed(make_pod(node="a", grants=half(), phase="Running"))
    world.gpujob_changed(make_gpujob())
    world.job_changed(make_job())
    assert list(world.running_pods.of(TEAM)) == []  # no project yet
    assert [pod.uid for pod in world.running_pods.on("a")] == [POD]
    world.project_changed(make_project())
    assert [pod.uid for pod in world.running_pods.of(TEAM)] == [POD]
    world.project_gone(TEAM)
    assert list(world.running_pods.of(TEAM)) == []


def test_a_pod_that_lost_its_job_may_be_asked_first() -> None:
    world = running()
    world.gpujob_changed(make_gpujob(generation=2, type="interactive", priority=100))
    lost = make_pod(version=2, node="a", grants=half(), phase="Running", startTime=STARTED, job="")
    world.pod_changed(lost)  # its controller reference was taken off
    pod = only(world)
    assert (pod.uid, pod.grants, pod.since) == (POD, half(), epoch_seconds(STARTED))
    assert (pod.interactive, pod.priority, pod.gang, pod.shape) == (False, 0, False, None)
    assert pod.job not in world.gpujobs
    world.pod_changed(make_pod(version=3, node="a", grants=half(), phase="Failed", job=""))
    assert list(world.running_pods.on("a")) == []


def test_a_pod_of_a_deleted_job_that_kept_its_pods_may_be_asked() -> None:
    world = running()
    world.gpujob_gone(JobKey("team-a/job"))
    world.job_gone(make_job().metadata.uid)
    world.pod_changed(make_pod(version=2, node="a", grants=half(), phase="Running", job=""))
    assert only(world).uid == POD
