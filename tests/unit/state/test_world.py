"""What follows from events and from our own decisions, in whatever order they come."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import (
    forged,
    half,
    make_gpujob,
    make_job,
    make_node,
    make_place,
    make_pod,
    make_project,
)

from gpu_scheduler.core.request import PodUID, ProjectName
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.devices import Device
from gpu_scheduler.state.world import World

POD = PodUID("uid-job-0")
NVIDIA = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]


def make_world(*pods: Pod) -> World:
    """Node a with two GPUs, project team-a, GPUJob job with its Job, and these pods."""
    world = World()
    world.node_changed(make_node("a"))
    world.project_changed(make_project())
    world.gpujob_changed(make_gpujob())
    world.job_changed(make_job())
    for pod in pods:
        world.pod_changed(pod)
    return world


def free(world: World) -> list[int]:
    return list(world.snapshot().free_milli)


def waiting(world: World) -> dict[str, list[str]]:
    return {str(job.key): [pod.name for pod in job.pods] for job in world.waiting_jobs()}


def facts(world: World) -> dict[str, Any]:
    """All that a plan depends on."""
    cluster = world.snapshot()
    return {
        "nodes": cluster.nodes,
        "devices": (cluster.dev_id, cluster.free_milli, cluster.free_mib),
        "rest": (cluster.free_cpu_milli, cluster.free_memory_bytes, cluster.free_pods),
        "held": cluster.allocated_milli,
        "projects": world.planner_projects(),
        "jobs": sorted(world.waiting_jobs(), key=lambda job: job.key),
    }


# --- the order of events ---


def everything() -> list[Callable[[World], object]]:
    pods = [make_pod("job-0"), make_pod("job-1", index=1)]
    placed = make_pod("job-2", index=2, node="a", grants=half())
    stranger = make_pod("x", path="other", job=None, node="b", containers=NVIDIA)
    agent = (Device("GPU-b", 0, "A100", 40000),)
    return [
        *[lambda w, p=p: w.pod_changed(p) for p in (*pods, placed, stranger)],  # type: ignore[misc]
        lambda w: w.job_changed(make_job()),
        lambda w: w.gpujob_changed(make_gpujob()),
        lambda w: w.project_changed(make_project()),
        lambda w: w.node_changed(make_node("a")),
        lambda w: w.node_changed(make_node("b")),
        lambda w: w.gpunode_changed("b", agent),
    ]


@given(st.permutations(range(len(everything()))), st.sets(st.integers(0, 9)))
def test_the_order_of_events_does_not_matter(order: Sequence[int], looks: set[int]) -> None:
    expected = World()
    for event in everything():
        event(expected)
    world, events = World(), everything()
    for step, number in enumerate(order):
        events[number](world)
        if step in looks:  # a plan in between must not freeze anything
            facts(world)
    assert facts(world) == facts(expected)
    assert waiting(world) == {"team-a/job": ["job-0", "job-1"]}


def test_old_news_of_a_pod_are_ignored() -> None:
    world = make_world(make_pod(version=5, node="a", grants=half()))
    assert world.pod_changed(make_pod(version=4)) is None
    assert (free(world), waiting(world)) == ([500, 1000], {})


def test_old_news_of_a_job_are_ignored() -> None:
    world = make_world()
    assert world.job_changed(make_job(version=3, ended="Complete")) is not None
    assert world.job_changed(make_job(version=2)) is None
    assert next(iter(world.jobs_of(make_gpujob().key))).complete


def test_a_job_of_nobody_is_not_taken_in() -> None:
    assert make_world().job_changed(make_job("x", uid="x", owner_uid="")) is None


def test_every_change_that_could_alter_a_plan_is_a_new_version() -> None:
    world = World()
    seen = [world.version]
    for event in everything():
        event(world)
        seen.append(world.version)
    for event in everything():
        event(world)
        assert world.version == seen[-1]  # the same again is not
    assert seen[0] < seen[-1]


# --- what is charged ---


def test_a_placed_pod_holds_until_it_has_ended() -> None:
    world = make_world(make_pod(version=1, node="a", grants=half()))
    assert free(world) == [500, 1000]
    world.pod_changed(make_pod(version=2, node="a", grants=half(), phase="Running"))
    world.pod_changed(make_pod(version=3, node="a", grants=half(), phase="Running", deleting=True))
    assert free(world) == [500, 1000]
    world.pod_changed(make_pod(version=4, node="a", grants=half(), phase="Failed", deleting=True))
    assert free(world) == [1000, 1000]


def test_a_deleted_pod_gives_back_everything() -> None:
    world = make_world()
    before = facts(world)
    world.pod_changed(make_pod(node="a", grants=half()))
    assert facts(world) != before
    world.pod_gone(POD)
    assert facts(world) == before
    assert not world.pods_of_job


def test_a_forged_allocation_of_a_pod_that_was_never_placed_takes_nothing() -> None:
    world = make_world(
        make_pod("job-0", annotations_=forged()),
        make_pod("job-1", path="gate", annotations_=forged()),
    )
    assert free(world) == [1000, 1000]
    assert waiting(world) == {"team-a/job": ["job-0", "job-1"]}


def test_pods_of_other_schedulers_take_cpu_memory_and_a_slot() -> None:
    world = make_world(make_pod("x", path="other", job=None, node="a", cpu="4", memory="1Gi"))
    cluster = world.snapshot()
    assert cluster.free_cpu_milli == [60_000]
    assert cluster.free_memory_bytes == [255 << 30]
    assert cluster.free_pods == [109]
    assert cluster.free_milli == [1000, 1000]


def test_gpus_of_the_device_plugin_close_a_node_until_the_pod_has_ended() -> None:
    stranger = {"name": "x", "path": "other", "job": None, "node": "a", "containers": NVIDIA}
    world = make_world(make_pod(version=1, **stranger))
    assert "team-a/x" in world.snapshot().nodes[0].closed
    world.pod_changed(make_pod(version=2, phase="Running", **stranger))
    assert world.snapshot().nodes[0].closed
    world.pod_changed(make_pod(version=3, phase="Succeeded", **stranger))
    assert not world.snapshot().nodes[0].closed


def test_gpus_of_the_device_plugin_close_a_node_until_the_pod_is_gone() -> None:
    world = make_world(make_pod("x", path="other", job=None, node="a", containers=NVIDIA))
    world.pod_gone(PodUID("uid-x"))
    assert not world.snapshot().nodes[0].closed


def test_a_node_reopens_after_a_stranger_that_was_given_an_allocation() -> None:
    stranger = {"name": "x", "path": "other", "job": None, "node": "a", "containers": NVIDIA}
    world = make_world(make_pod(version=1, **stranger))
    world.pod_changed(make_pod(version=2, annotations_=forged(), **stranger))
    assert facts(world) == facts(make_world(make_pod(annotations_=forged(), **stranger)))
    world.pod_gone(PodUID("uid-x"))
    assert facts(world) == facts(make_world())


def test_gpus_held_count_for_the_project_of_the_namespace() -> None:
    world = make_world()
    world.project_changed(make_project("team-b", "lab", "lab-2"))
    for number, namespace in enumerate(["team-a", "lab", "lab-2", "nowhere"]):
        share = half(str(number % 2), 100 + number)
        world.pod_changed(make_pod(f"p{number}", namespace=namespace, node="a", grants=share))
    assert world.snapshot().allocated_milli == {"team-a": 100, "team-b": 101 + 102}
    world.project_gone(ProjectName("team-b"))
    assert world.snapshot().allocated_milli == {"team-a": 100}


def test_a_charge_finds_its_device_when_the_agent_names_it_by_uuid() -> None:
    world = make_world(make_pod(node="a", grants=half("1")))
    world.gpunode_changed("a", (Device("GPU-0", 0, "A", 40960), Device("GPU-1", 1, "A", 40960)))
    assert (world.snapshot().dev_id, free(world)) == (["GPU-0", "GPU-1"], [1000, 500])
    world.gpunode_gone("a")
    assert (world.snapshot().dev_id, free(world)) == (["0", "1"], [1000, 500])


def test_a_node_that_comes_back_has_its_pods_charged() -> None:
    world = make_world(make_pod(node="a", grants=half()))
    world.node_gone("a")
    assert free(world) == []
    world.node_changed(make_node("a"))
    assert free(world) == [500, 1000]


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


# --- a restart ---

WHICH = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), WHICH),
        st.tuples(st.just("assume"), WHICH),
        st.tuples(st.just("echo"), WHICH),
        st.tuples(st.just("fail"), WHICH),
        st.tuples(st.just("run"), WHICH),
        st.tuples(st.just("end"), WHICH),
        st.tuples(st.just("delete"), WHICH),
    ),
    max_size=30,
)


@given(STEPS)
def test_a_restart_knows_what_the_old_one_knew(steps: list[tuple[str, int]]) -> None:
    """Annotations are the only ledger: the same objects give the same world."""
    world = make_world()
    objects: dict[int, Pod] = {}
    version = 1
    for verb, number in steps:
        version += 1
        name, index = f"job-{number}", number
        uid = PodUID(f"uid-{name}")
        known = objects.get(number)
        place = make_place(name, "a", half(str(number % 2), 300))
        held = {"node": "a", "grants": place.grants}
        if verb == "create" and known is None:
            objects[number] = make_pod(name, index=index, version=version)
        elif known is None:
            continue
        elif verb == "assume" and world.waiting.pod(uid) is not None:
            world.assume(place)
            continue
        elif verb == "echo" and uid in world.assumed:
            objects[number] = make_pod(name, index=index, version=version, **held)
        elif verb == "fail":
            world.forget(uid, known)
            continue
        elif verb in ("run", "end") and known.spec.node_name:
            phase = "Running" if verb == "run" else "Succeeded"
            if known.status.phase == "Succeeded":
                continue
            objects[number] = make_pod(name, index=index, version=version, phase=phase, **held)
        elif verb == "delete":
            del objects[number]
            world.pod_gone(uid)
            continue
        else:
            continue
        world.pod_changed(objects[number])
    for uid in list(world.assumed):  # what is in flight is settled before anybody compares
        world.forget(uid, objects[int(uid[-1])])
    assert facts(world) == facts(make_world(*objects.values()))
    assert max(0, *free(world)) <= 1000
