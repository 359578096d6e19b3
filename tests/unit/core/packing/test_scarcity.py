from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import A30, A100, ClusterBuilder, pod_shape
from tests.unit.core.packing import definitions
from tests.unit.core.packing.workloads import target_workloads

from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.packing.scarcity import scarcity_milli
from gpu_scheduler.core.packing.target_workload import TargetWorkload, target_workload_of


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    builder = ClusterBuilder()
    for n in range(draw(st.integers(0, 5))):
        models = draw(st.lists(st.sampled_from([A100, A30]), max_size=4))
        builder.node(f"n{n}", models=models, cpu_milli=draw(st.sampled_from([2000, 16_000])))
    return Snapshot(builder.obj())


@settings(deadline=None)
@given(target_workloads(), snapshots())
def test_it_is_what_its_definition_says(workload: TargetWorkload, snapshot: Snapshot):
    found = scarcity_milli(workload, snapshot).tolist()
    assert len(found) == len(snapshot.node_shape)
    for milli, expected in zip(found, definitions.excess(workload, snapshot), strict=True):
        assert abs(milli - 1000 * expected) <= 0.51


def test_nothing_is_scarce_when_everybody_can_go_everywhere():
    snapshot = Snapshot(ClusterBuilder().node("a", 2).node("b", 4).obj())
    assert scarcity_milli(
        target_workload_of({pod_shape(500): 1, pod_shape(1000): 1}), snapshot
    ).tolist() == [
        0,
        0,
    ]


def test_a_model_that_is_wanted_more_than_there_is_is_scarce():
    snapshot = Snapshot(ClusterBuilder().node("a", 2, A100).node("b", 2, A30).obj())
    workload = target_workload_of({pod_shape(1000, models=("a30",)): 1})
    assert scarcity_milli(workload, snapshot).tolist() == [0, 1000]  # twice what there is


def test_the_only_node_with_enough_cpu_for_a_large_pod_is_scarce():
    builder = ClusterBuilder().node("small", 8, cpu_milli=64_000).node("large", 8)
    workload = target_workload_of(
        {pod_shape(1000, count=8, cpu_milli=120_000): 1, pod_shape(1000, cpu_milli=1000): 8}
    )
    assert scarcity_milli(workload, Snapshot(builder.obj())).tolist() == [0, 500]
