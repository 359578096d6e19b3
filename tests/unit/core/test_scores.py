from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, shape

from gpu_scheduler.core.cluster import Cluster
from gpu_scheduler.core.demand import Demand
from gpu_scheduler.core.request import DeviceRequest, ProjectName, Shape
from gpu_scheduler.core.scores import Candidates
from gpu_scheduler.core.snapshot import Snapshot

TEAM = ProjectName("team-a")
SHAPES = [
    shape(500),
    shape(200, cpu_milli=3000),
    shape(1000),
    shape(1000, count=2),
    shape(mib=9_000),
    shape(300, models=("a30",)),
    shape(containers=[DeviceRequest(0, 1, 400), DeviceRequest(1, 1, 300)]),
    shape(),
]


def cluster() -> Cluster:
    builder = ClusterBuilder().node("none", 0, cpu_milli=8000)
    for i in range(3):
        builder.node(f"a100-{i}", 2, A100, cpu_milli=16_000)
    return builder.node("a30-0", 1, A30).node("mixed", models=[A100, A30], pods=5).obj()


def best_by_scan(demand: Demand, snapshot: Snapshot) -> int | None:
    """The best node by looking at all of them."""
    ranked = []
    for node in demand.usable:
        choice = demand.chooser.choose(node)
        if choice is not None and snapshot.has_room(node, demand.shape):
            left_on_node = snapshot.node_free_milli[node] - sum(p[2] for p in choice.picks)
            ranked.append((choice.size_mib, choice.left_milli, left_on_node, node))
    return min(ranked)[-1] if ranked else None


@settings(deadline=None)
@given(st.lists(st.one_of(st.sampled_from(SHAPES), st.none()), max_size=40))
def test_the_table_names_the_node_that_a_full_scan_would(steps: list[Shape | None]):
    snapshot = Snapshot(cluster())
    demands = {s: Demand(s, snapshot) for s in SHAPES}
    tables = {s: Candidates(d, snapshot, d.usable) for s, d in demands.items()}
    for step in steps:
        if step is None:
            snapshot.rollback(snapshot.mark() // 2)
            continue
        found = tables[step].best()
        assert (found and found[0]) == best_by_scan(demands[step], snapshot)
        if found is not None:
            snapshot.take(found[0], step, found[1].picks, TEAM)


def candidates(builder: ClusterBuilder, what: Shape) -> Candidates:
    snapshot = Snapshot(builder.obj())
    demand = Demand(what, snapshot)
    return Candidates(demand, snapshot, demand.usable)


def named(table: Candidates, *avoid: str, most_milli: int | None = None) -> int | None:
    found = table.best(frozenset(avoid), most_milli)
    return found and found[0]


def test_equal_scores_go_to_the_node_with_the_least_free_then_to_the_first():
    builder = ClusterBuilder().node("a").node("b").node("c").held("b/0", 1000).held("c/0", 1000)
    assert named(candidates(builder, shape(500))) == 1


def test_avoided_nodes_are_passed_over_and_come_back():
    table = candidates(ClusterBuilder().node("a").node("b").node("c"), shape(500))
    assert named(table, "a", "b") == 2
    assert named(table, "a") == 1
    assert named(table) == 0
    assert named(table, "a", "b", "c") is None


def test_nodes_where_the_pod_would_be_charged_too_much_are_passed_over():
    builder = ClusterBuilder().node("small", 1, A30).node("large", 1, A100)
    table = candidates(builder, shape(mib=12_000))
    assert named(table) == 0
    assert named(table, most_milli=300) == 1
    assert named(table, most_milli=200) is None


def test_a_pod_without_a_gpu_goes_where_the_least_gpu_is_free():
    builder = ClusterBuilder().node("a").node("b").held("b/0", 500)
    assert named(candidates(builder, shape(cpu_milli=1000))) == 1
    assert named(candidates(builder.node("bare", 0), shape(cpu_milli=1000))) == 2
