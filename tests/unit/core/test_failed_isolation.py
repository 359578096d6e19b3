"""Who shares a GPU behind a level of isolation goes to no node whose self-test of it failed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.builders import ClusterBuilder, job, pod_shape, projects
from tests.unit.core.gang_builders import gang, only_wait
from tests.unit.core.properties.play import Play, Pod

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Plan, Reason
from gpu_scheduler.core.model.request import DeviceRequest, PodShape
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

INTERPOSER = ("interposer",)
WAY_OUT = (
    "(kubectl gpu check shows what the test saw); isolation: framework, or whole GPUs, do without"
)


def failed(builder: ClusterBuilder, *names: str) -> Cluster:
    cluster = builder.obj()
    cluster.nodes = [
        replace(node, failed_isolation=INTERPOSER if node.name in names else ())
        for node in cluster.nodes
    ]
    return cluster


def planned(cluster: Cluster, *shapes: PodShape) -> Plan:
    jobs = [job(f"j{i}", shape) for i, shape in enumerate(shapes)]
    return plan(PlanInput(cluster, projects(), jobs))


def capped(milli: int = 500, **more: int) -> PodShape:
    return replace(pod_shape(milli, **more), isolation="interposer")


def nodes(result: Plan) -> list[str]:
    return [each.node for each in result.assignments]


@pytest.mark.parametrize(
    ("shape", "where"),
    [
        (capped(), ["b"]),
        (replace(pod_shape(mib=4096), isolation="interposer"), ["b"]),
        (replace(pod_shape(500), isolation=""), ["a"]),
        (replace(pod_shape(500), isolation="framework"), ["a"]),
        (capped(1000), ["a"]),
        (capped(1000, count=2), ["a"]),
        (
            replace(
                pod_shape(containers=(DeviceRequest(0, 1, 1000), DeviceRequest(1, 1, 200))),
                isolation="interposer",
            ),
            ["b"],
        ),
        (capped(0), ["a"]),
    ],
    ids=["fraction", "memory", "unsaid", "framework", "whole", "several", "mixed", "no GPU"],
)
def test_only_who_shares_a_gpu_behind_the_level_is_kept_away(
    shape: PodShape, where: list[str]
) -> None:
    builder = ClusterBuilder().node("a")
    if where == ["b"]:
        builder.node("b")
    assert nodes(planned(failed(builder, "a"), shape)) == where


def test_the_sentence_counts_the_nodes_and_names_the_way_out() -> None:
    builder = ClusterBuilder()
    for name in "abcd":
        builder.node(name, 1)
    result = planned(failed(builder, "a", "b", "c", "d"), capped())
    (wait,) = result.waits
    assert (wait.reason, wait.message) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs 0.5 of a GPU; they are free only where pods cannot start now: 4 nodes (a, b, c and "
        f"1 more) failed the self-test of isolation: interposer {WAY_OUT}",
    )


def test_beside_other_closed_nodes_each_is_said_once() -> None:
    builder = ClusterBuilder().node("a", 1).node("b", 1, unschedulable="is cordoned")
    builder.node("c", 1).held("c/0", 1000)
    result = planned(failed(builder, "a", "b"), capped())
    (wait,) = result.waits
    assert (wait.reason, wait.message) == (
        Reason.WAITING_FOR_RESOURCES,
        "needs 0.5 of a GPU; they are free only where pods cannot start now: b is cordoned, "
        f"1 node (a) failed the self-test of isolation: interposer {WAY_OUT}",
    )


def test_nobody_gives_way_on_such_a_node_and_what_runs_there_stays() -> None:
    case = Play((1,), projects())
    case.place(Pod("runs", "team-a", capped(1000)), "n0/0")
    case.wait(Pod("w", "team-a", capped(), priority=90))
    given = case.given()
    given.cluster.nodes = [replace(given.cluster.nodes[0], failed_isolation=INTERPOSER)]
    result = plan(given)
    assert not result.assignments and not result.evicts


def test_which_gpus_typical_work_wants_does_not_depend_on_isolation() -> None:
    from gpu_scheduler.core.packing.target_workload import one_request

    assert one_request(capped()) == one_request(pod_shape(500))


def test_a_gang_that_the_rest_of_the_nodes_cannot_hold_is_told_as_well() -> None:
    builder = ClusterBuilder().node("a", 1).node("b", 1)
    waiting = gang("g", (capped(800), 2))
    wait = only_wait(plan(PlanInput(failed(builder, "a"), projects(), [waiting])))
    assert wait.reason is Reason.WAITING_FOR_GANG
    assert wait.message.endswith(
        f"; 1 node (a) failed the self-test of isolation: interposer {WAY_OUT}"
    )


@pytest.mark.long
@given(
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.lists(
        st.builds(
            lambda milli, isolation: replace(pod_shape(milli), isolation=isolation),
            st.sampled_from([200, 500, 1000]),
            st.sampled_from(["", "interposer"]),
        ),
        min_size=1,
        max_size=10,
    ),
)
def test_nobody_is_placed_where_the_level_failed_and_nobody_else_is_kept_away(
    flags: list[bool], shapes: list[PodShape]
) -> None:
    builder = ClusterBuilder()
    for number in range(len(flags)):
        builder.node(f"n{number}", 1)
    cluster = failed(builder, *(f"n{i}" for i, flag in enumerate(flags) if flag))
    by_name = {node.name: node for node in cluster.nodes}
    result = planned(cluster, *shapes)
    asked = {f"j{i}-0": shape for i, shape in enumerate(shapes)}
    for each in result.assignments:
        assert not by_name[each.node].closed_to(asked[each.pod])
    if all(shape.isolation == "" for shape in shapes):
        open_everywhere = planned(failed(builder), *shapes)
        assert nodes(result) == nodes(open_everywhere)
