"""What is kept between cycles changes nothing but the time that a plan takes."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, job, pod_shape, projects

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Assignment, Plan
from gpu_scheduler.core.model.request import WaitingJob
from gpu_scheduler.core.model.snapshot import differences
from gpu_scheduler.core.packing.history import History
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

POD_KINDS = [
    pod_shape(500, cpu_milli=1000),
    pod_shape(300),
    pod_shape(1000),
    pod_shape(1000, count=2),
    pod_shape(mib=12_000),
    pod_shape(400, models=("a30",)),
    pod_shape(cpu_milli=2000),
]
MIX = History().workload


def cluster() -> Cluster:
    builder = ClusterBuilder().node("sick", 2, unhealthy=[1]).node("bare", 0)
    for i in range(3):
        builder.node(f"a{i}", 2, A100, cpu_milli=8000)
    return builder.node("b", models=[A100, A30]).obj()


def apply(place: Assignment, state: Cluster, sign: int) -> None:
    """Charge (-1) or give back (+1) what a placement takes."""
    node = [each.name for each in state.nodes].index(place.node)
    state.free_pods[node] += sign
    for allocated in place.devices:
        device = state.dev_id.index(allocated.device)
        state.free_device(device, sign * allocated.fraction_milli, sign * allocated.mib)


def cycles(state: Cluster, turns: list[list[int]], planner: Callable[[list[WaitingJob]], Plan]):
    """Plans turn by turn; what was placed two turns ago leaves."""
    there: list[tuple[Assignment, ...]] = []
    for turn, numbers in enumerate(turns):
        jobs = [job(f"j{turn}-{i}", POD_KINDS[n], 2) for i, n in enumerate(numbers)]
        result = planner(jobs)
        for place in result.assignments:
            apply(place, state, -1)
        there.append(result.assignments)
        if len(there) > 2:
            for place in there[-3]:
                apply(place, state, 1)
        yield result


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, len(POD_KINDS) - 1), max_size=4), max_size=6))
def test_a_plan_with_a_session_is_the_plan_without(turns: list[list[int]]):
    kept, session = cluster(), PlannerCache()
    fresh = cluster()
    with_session = cycles(
        kept, turns, lambda jobs: plan(PlanInput(kept, projects(), jobs, workload=MIX), session)
    )
    without = cycles(
        fresh, turns, lambda jobs: plan(PlanInput(fresh, projects(), jobs, workload=MIX))
    )
    assert list(with_session) == list(without)
    assert kept == fresh


def test_nodes_that_come_are_seen():
    session = PlannerCache()
    small = ClusterBuilder().node("a", 1).obj()
    jobs = [job("pair", pod_shape(1000, count=2))]
    assert plan(PlanInput(small, projects(), jobs), session).assignments == ()
    large = ClusterBuilder().node("a", 1).node("b", 2).obj()
    assert plan(PlanInput(large, projects(), jobs), session).assignments[0].node == "b"
    assert plan(PlanInput(small, projects(), jobs), session).assignments == ()


def test_a_device_that_was_given_out_twice_takes_again_what_is_given_back():
    """With a stranger's pod it has less than nothing free; without, nothing: ours has all."""
    session, state = PlannerCache(), ClusterBuilder().node("a", 1).obj()
    for free in (-1000, 0):
        state.free_milli[0], state.free_mib[0] = free, free
        plan(PlanInput(state, projects(), []), session)
        assert session.snapshot.cluster.free_milli == [0]
    assert session.snapshot.barred == set()


def test_the_session_learns_what_is_typical_from_what_it_places():
    state = ClusterBuilder().node("a", 64, cpu_milli=1 << 40, pods=1000).obj()
    session = PlannerCache()
    plan(PlanInput(state, projects(), [job("few", pod_shape(330), 20)]), session)
    before = session.table
    plan(PlanInput(state, projects(), [job("few-more", pod_shape(330), 20)]), session)
    assert session.table is before
    plan(PlanInput(state, projects(), [job("many", pod_shape(100), 600)]), session)
    assert session.table is not before  # the target workload is a new one


@given(st.lists(st.integers(0, 2), max_size=900), st.integers(0, 1000), st.integers(0, 2))
def test_differences_are_found_wherever_they_are(values: list[int], where: int, new: int):
    other = list(values)
    if values:
        other[where % len(values)] = new
    assert list(differences(values, other)) == [
        i for i, (a, b) in enumerate(zip(values, other, strict=True)) if a != b
    ]
