from tests.unit.builders import A30, A100, ClusterBuilder, pod_shape

from gpu_scheduler.core.fit.scores import Candidates
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing.history import History
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.table import ScoreTable

PodCase = tuple[Candidates, PodRequest]


def candidates(builder: ClusterBuilder, what: PodShape) -> PodCase:
    snapshot = Snapshot(builder.obj())
    pod_request = PodRequest(what, snapshot)
    table = ScoreTable(snapshot, Packing.FRAGMENTATION, History().workload)
    return Candidates(snapshot, table), pod_request


def named(ask: PodCase, *avoid: str, most_milli: int | None = None) -> int | None:
    found = ask[0].best(ask[1], None, frozenset(avoid), most_milli)
    return found and found[0]


def test_equal_scores_go_to_the_node_with_the_least_free_then_to_the_first():
    builder = ClusterBuilder().node("a").node("b").node("c").held("b/0", 1000).held("c/0", 1000)
    assert named(candidates(builder, pod_shape(500))) == 1


def test_avoided_nodes_are_passed_over_and_come_back():
    table = candidates(ClusterBuilder().node("a").node("b").node("c"), pod_shape(500))
    assert named(table, "a", "b") == 2
    assert named(table, "a") == 1
    assert named(table) == 0
    assert named(table, "a", "b", "c") is None


def test_nodes_where_the_pod_would_be_charged_too_much_are_passed_over():
    builder = ClusterBuilder().node("small", 1, A30).node("large", 1, A100)
    table = candidates(builder, pod_shape(mib=12_000))
    assert named(table) == 0
    assert named(table, most_milli=300) == 1
    assert named(table, most_milli=200) is None


def test_a_pod_without_a_gpu_goes_where_the_least_gpu_is_free():
    builder = ClusterBuilder().node("a").node("b").held("b/0", 500)
    assert named(candidates(builder, pod_shape(cpu_milli=1000))) == 1
    assert named(candidates(builder.node("bare", 0), pod_shape(cpu_milli=1000))) == 2
