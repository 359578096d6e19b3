"""What follows from events, in whatever order they come, and after a restart."""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.state.builders import (
    forged,
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)
from tests.unit.state.cluster_states import facts, free, make_cluster_state, waiting

from gpu_scheduler.core.model.request import PodUID, ProjectName
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.nodes.devices import NodeDevice

POD = PodUID("uid-job-0")
NVIDIA = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
SERVED = make_node("a", allocatable={"nvidia.com/gpu": "2"})


# --- who belongs to whom ---


def test_a_pod_holds_its_devices_whatever_of_its_marks_somebody_takes_away() -> None:
    state = make_cluster_state(make_pod(node="a", devices=half(milli=1000), phase="Running"))
    assert free(state) == [0, 1000]
    bare = make_pod(version=2, node="a", devices=half(milli=1000), phase="Running", job=None)
    assert not bare.metadata.labels
    state.pod_changed(bare)
    state.job_gone("job-uid")
    state.gpujob_gone(make_gpujob().key)
    assert free(state) == [0, 1000]


def test_a_pod_is_not_of_a_job_in_another_namespace_whichever_is_seen_first() -> None:
    thief = make_pod("thief", uid="thief", namespace="team-b")
    first, last = make_cluster_state(make_pod()), ClusterState()
    first.pod_changed(thief)
    for pod in (thief, make_pod()):
        last.pod_changed(pod)
    last.job_changed(make_job(parallelism=4))
    last.gpujob_changed(make_gpujob())
    last.project_changed(make_project())
    for state in (first, last):
        assert waiting(state) == {"team-a/job": ["job-0"]}
        assert [pod.name for pod in state.workloads.pods(make_gpujob().key)] == ["job-0"]
        state.pod_changed(make_pod("thief", uid="thief", namespace="team-b", version=2))
        assert waiting(state) == {"team-a/job": ["job-0"]}
        state.pod_gone(PodUID("thief"))
        assert waiting(state) == {"team-a/job": ["job-0"]}


# --- the order of events ---


def everything() -> list[Callable[[ClusterState], object]]:
    pods = [make_pod("job-0"), make_pod("job-1", index=1)]
    placed = make_pod("job-2", index=2, node="a", devices=half())
    stranger = make_pod("x", path="other", job=None, node="b", containers=NVIDIA)
    agent = (NodeDevice("GPU-b", 0, "A100", 40000),)
    return [
        *[lambda w, p=p: w.pod_changed(p) for p in (*pods, placed, stranger)],  # type: ignore[misc]
        lambda w: w.job_changed(make_job(parallelism=4)),
        lambda w: w.gpujob_changed(make_gpujob()),
        lambda w: w.project_changed(make_project()),
        lambda w: w.nodes.changed(make_node("a")),
        lambda w: w.nodes.changed(make_node("b", allocatable={"nvidia.com/gpu": "1"})),
        lambda w: w.nodes.reported("b", agent),
    ]


@given(st.permutations(range(len(everything()))), st.sets(st.integers(0, 9)))
def test_the_order_of_events_does_not_matter(order: Sequence[int], looks: set[int]) -> None:
    expected = ClusterState()
    for event in everything():
        event(expected)
    state, events = ClusterState(), everything()
    for step, number in enumerate(order):
        events[number](state)
        if step in looks:  # a plan in between must not freeze anything
            facts(state)
    assert facts(state) == facts(expected)
    assert waiting(state) == {"team-a/job": ["job-0", "job-1"]}


def test_old_news_of_a_pod_are_ignored() -> None:
    state = make_cluster_state(make_pod(version=5, node="a", devices=half()))
    assert state.pod_changed(make_pod(version=4)) is None
    assert (free(state), waiting(state)) == ([500, 1000], {})


def test_a_pod_that_is_gone_stays_gone_whatever_is_read_of_it_later() -> None:
    """Nobody tells of its end again: it would hold its GPUs until the leader changes."""
    state = make_cluster_state(make_pod(version=1, node="a", devices=half()))
    before = facts(make_cluster_state())
    state.pod_gone(POD)
    version = state.changes.version
    for late in (1, 2, 9):  # the watch may have missed what the read shows
        assert state.pod_changed(make_pod(version=late, node="a", devices=half())) is None
    assert (facts(state), state.pods.known, state.changes.version) == (before, {}, version)


def test_a_pod_may_be_gone_before_anything_was_known_of_it() -> None:
    state = make_cluster_state()
    state.pod_gone(POD)
    assert state.pod_changed(make_pod(node="a", devices=half())) is None
    assert free(state) == [1000, 1000]


def test_a_decision_about_a_pod_that_comes_late_is_not_revived_by_it() -> None:
    state = make_cluster_state(make_pod())
    state.decisions.assume(make_assignment())
    state.pod_gone(POD)
    state.forget(POD, make_pod(version=2))
    state.pod_changed(make_pod(version=3, node="a", devices=half()))
    assert (free(state), waiting(state)) == ([1000, 1000], {})


def test_an_ended_pod_of_which_nothing_is_kept_can_be_looked_at_again() -> None:
    ended = make_pod(version=2, node="a", devices=half(), phase="Succeeded")
    state = make_cluster_state(ended)
    state.pod_gone(POD, for_good=False)
    assert state.pods.known == {}
    assert state.pod_changed(ended) is not None


def test_old_news_of_a_job_are_ignored() -> None:
    state = make_cluster_state()
    assert state.job_changed(make_job(version=3, ended="Complete")) is not None
    assert state.job_changed(make_job(version=2)) is None
    assert next(iter(state.workloads.jobs(make_gpujob().key))).complete


def test_a_job_of_nobody_is_not_taken_in() -> None:
    assert make_cluster_state().job_changed(make_job("x", uid="x", owner_uid="")) is None


def test_every_change_that_could_alter_a_plan_is_a_new_version() -> None:
    state = ClusterState()
    seen = [state.changes.version]
    for event in everything():
        event(state)
        seen.append(state.changes.version)
    for event in everything():
        event(state)
        assert state.changes.version == seen[-1]  # the same again is not
    assert seen[0] < seen[-1]


# --- what is charged ---


def test_a_placed_pod_holds_until_it_has_ended() -> None:
    state = make_cluster_state(make_pod(version=1, node="a", devices=half()))
    assert free(state) == [500, 1000]
    state.pod_changed(make_pod(version=2, node="a", devices=half(), phase="Running"))
    state.pod_changed(make_pod(version=3, node="a", devices=half(), phase="Running", deleting=True))
    assert free(state) == [500, 1000]
    state.pod_changed(make_pod(version=4, node="a", devices=half(), phase="Failed", deleting=True))
    assert free(state) == [1000, 1000]


def test_a_deleted_pod_gives_back_everything() -> None:
    state = make_cluster_state()
    before = facts(state)
    state.pod_changed(make_pod(node="a", devices=half()))
    assert facts(state) != before
    state.pod_gone(POD)
    assert facts(state) == before


def test_a_forged_allocation_of_a_pod_that_was_never_placed_takes_nothing() -> None:
    state = make_cluster_state(
        make_pod("job-0", annotations_=forged()),
        make_pod("job-1", path="gate", annotations_=forged()),
    )
    assert free(state) == [1000, 1000]
    assert waiting(state) == {"team-a/job": ["job-0", "job-1"]}


def test_pods_of_other_schedulers_take_cpu_memory_and_a_slot() -> None:
    state = make_cluster_state(
        make_pod("x", path="other", job=None, node="a", cpu="4", memory="1Gi")
    )
    cluster = state.snapshot()
    assert cluster.free_cpu_milli == [60_000]
    assert cluster.free_memory_bytes == [255 << 30]
    assert cluster.free_pods == [109]
    assert cluster.free_milli == [1000, 1000]


def test_gpus_of_the_device_plugin_close_a_node_until_the_pod_has_ended() -> None:
    stranger = {"name": "x", "path": "other", "job": None, "node": "a", "containers": NVIDIA}
    state = make_cluster_state(make_pod(version=1, **stranger))
    state.nodes.changed(SERVED)
    assert "team-a/x" in state.snapshot().nodes[0].unschedulable
    state.pod_changed(make_pod(version=2, phase="Running", **stranger))
    assert state.snapshot().nodes[0].unschedulable
    state.pod_changed(make_pod(version=3, phase="Succeeded", **stranger))
    assert not state.snapshot().nodes[0].unschedulable


def test_gpus_of_the_device_plugin_close_a_node_until_the_pod_is_gone() -> None:
    state = make_cluster_state(make_pod("x", path="other", job=None, node="a", containers=NVIDIA))
    state.nodes.changed(SERVED)
    assert state.snapshot().nodes[0].unschedulable
    state.pod_gone(PodUID("uid-x"))
    assert not state.snapshot().nodes[0].unschedulable


def test_a_node_reopens_after_a_stranger_that_was_given_an_allocation() -> None:
    stranger = {"name": "x", "path": "other", "job": None, "node": "a", "containers": NVIDIA}
    state = make_cluster_state(make_pod(version=1, **stranger))
    state.nodes.changed(SERVED)
    state.pod_changed(make_pod(version=2, annotations_=forged(), **stranger))
    expected = make_cluster_state(make_pod(annotations_=forged(), **stranger))
    expected.nodes.changed(SERVED)
    assert facts(state) == facts(expected)
    state.pod_gone(PodUID("uid-x"))
    assert facts(state) == facts(make_cluster_state())


def test_gpus_held_count_for_the_project_of_the_namespace() -> None:
    state = make_cluster_state()
    state.project_changed(make_project("team-b", "lab", "lab-2"))
    for number, namespace in enumerate(["team-a", "lab", "lab-2", "nowhere"]):
        share = half(str(number % 2), 100 + number)
        state.pod_changed(make_pod(f"p{number}", namespace=namespace, node="a", devices=share))
    assert state.snapshot().allocated_milli == {"team-a": 100, "team-b": 101 + 102}
    state.project_gone(ProjectName("team-b"))
    assert state.snapshot().allocated_milli == {"team-a": 100}


def test_a_charge_finds_its_device_when_the_agent_names_it_by_uuid() -> None:
    state = make_cluster_state(make_pod(node="a", devices=half("1")))
    state.nodes.reported(
        "a", (NodeDevice("GPU-0", 0, "A", 40960), NodeDevice("GPU-1", 1, "A", 40960))
    )
    assert (state.snapshot().dev_id, free(state)) == (["GPU-0", "GPU-1"], [1000, 500])
    state.nodes.report_gone("a")
    assert (state.snapshot().dev_id, free(state)) == (["0", "1"], [1000, 500])


def test_a_node_that_comes_back_has_its_pods_charged() -> None:
    state = make_cluster_state(make_pod(node="a", devices=half()))
    state.nodes.gone("a")
    assert free(state) == []
    state.nodes.changed(make_node("a"))
    assert free(state) == [500, 1000]


# --- a restart ---

WHICH = st.integers(0, 5)
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
    """Annotations are the only ledger: the same objects give the same state."""
    state = make_cluster_state()
    objects: dict[int, Pod] = {}
    gone: set[int] = set()  # a uid never comes back
    version = 1
    for verb, number in steps:
        version += 1
        name, index = f"job-{number}", number
        uid = PodUID(f"uid-{name}")
        known = objects.get(number)
        place = make_assignment(name, "a", half(str(number % 2), 300))
        held = {"node": "a", "devices": place.devices}
        if verb == "create" and known is None and number not in gone:
            objects[number] = make_pod(name, index=index, version=version)
        elif known is None:
            continue
        elif verb == "assume" and state.waiting.pod(uid) is not None:
            state.decisions.assume(place)
            continue
        elif verb == "echo" and uid in state.decisions.assumed:
            objects[number] = make_pod(name, index=index, version=version, **held)
        elif verb == "fail":
            state.forget(uid, known)
            continue
        elif verb in ("run", "end") and known.spec.node_name:
            phase = "Running" if verb == "run" else "Succeeded"
            if known.status.phase == "Succeeded":
                continue
            objects[number] = make_pod(name, index=index, version=version, phase=phase, **held)
        elif verb == "delete":
            del objects[number]
            gone.add(number)
            state.pod_gone(uid)
            continue
        else:
            continue
        state.pod_changed(objects[number])
    for uid in list(
        state.decisions.assumed
    ):  # what is in flight is settled before anybody compares
        state.forget(uid, objects[int(uid[-1])])
    assert facts(state) == facts(make_cluster_state(*objects.values()))
    assert max(0, *free(state)) <= 1000
