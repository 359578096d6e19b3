"""Classes of GPUs in the planner: which class a device is of, and which device is the cheapest."""

import pytest
from tests.unit.builders import A30, A100, ClusterBuilder, dell_selfhosted, job, pod_shape, projects

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.catalogue import Catalogue, GPUType, either
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

A100_80 = "NVIDIA-A100-SXM4-80GB"
T4 = "Tesla-T4"


def landed(builder: ClusterBuilder, what, *kinds: GPUType, packing=Packing.FRAGMENTATION) -> str:
    """The node on which a pod lands."""
    cluster = builder.obj()
    cluster.catalogue = Catalogue(kinds)
    result = plan(PlanInput(cluster, projects(), [job("j", what)], packing=packing))
    assert result.assignments, result.waits
    return result.assignments[0].node


@pytest.mark.parametrize("packing", list(Packing))
def test_memory_goes_to_the_smallest_device_where_no_prices_are_known(packing: Packing):
    assert landed(dell_selfhosted(), pod_shape(mib=20_000), packing=packing) == "dell-3"
    assert landed(dell_selfhosted(), pod_shape(mib=30_000), packing=packing) == "dell-0"


@pytest.mark.parametrize("packing", list(Packing))
def test_memory_goes_to_the_cheapest_device_where_all_have_a_price(packing: Packing):
    prices = GPUType("a100", "a100", 900_000), GPUType("a30", "a30", 1_100_000)
    assert landed(dell_selfhosted(), pod_shape(mib=20_000), *prices, packing=packing) == "dell-0"
    prices = GPUType("a100", "a100", 3_670_000), GPUType("a30", "a30", 1_100_000)
    assert landed(dell_selfhosted(), pod_shape(mib=20_000), *prices, packing=packing) == "dell-3"


def test_a_device_without_a_price_leaves_the_order_to_memory():
    only = GPUType("a100", "a100", 1)
    assert landed(dell_selfhosted(), pod_shape(mib=20_000), only) == "dell-3"


def test_models_that_are_named_are_ordered_by_price_too():
    builder = ClusterBuilder().node("a", 1, A100).node("b", 1, A30).node("c", 1, T4)
    prices = GPUType("a100", "a100", 5), GPUType("a30", "a30", 7), GPUType("t4", "t4", 1)
    what = pod_shape(mib=10_000, models=("a100", "a30"))
    assert landed(builder, what, *prices) == "a"


def test_the_cheapest_device_of_a_mixed_node_is_taken():
    builder = ClusterBuilder().node("a", models=[A30, A100])
    cluster = builder.obj()
    cluster.catalogue = Catalogue((GPUType("a100", "a100", 5), GPUType("a30", "a30", 7)))
    result = plan(PlanInput(cluster, projects(), [job("j", pod_shape(mib=10_000))]))
    assert result.assignments[0].devices[0].device == "a/1"


def test_a_request_by_share_does_not_look_at_prices():
    prices = GPUType("a100", "a100", 9), GPUType("a30", "a30", 1)
    builder = dell_selfhosted().held("dell-0/0", 500)
    assert landed(builder, pod_shape(500), *prices) == "dell-0"


def test_new_prices_reach_a_planner_that_remembers():
    cluster, session = dell_selfhosted().obj(), PlannerCache()
    cluster.catalogue = Catalogue((GPUType("a100", "a100", 5), GPUType("a30", "a30", 7)))
    jobs = [job("j", pod_shape(mib=20_000))]
    assert plan(PlanInput(cluster, projects(), jobs), session).assignments[0].node == "dell-0"
    cluster.catalogue = Catalogue((GPUType("a100", "a100", 7), GPUType("a30", "a30", 5)))
    assert plan(PlanInput(cluster, projects(), jobs), session).assignments[0].node == "dell-3"


def test_a_device_belongs_to_the_class_that_says_most_of_its_name():
    catalogue = Catalogue(
        (GPUType("any", "", 1), GPUType("a100", "a100", 2), GPUType("big", "a100-sxm4-80gb", 3))
    )
    found = [catalogue.of(model) for model in (T4, A100, A100_80)]
    assert [kind and kind.name for kind in found] == ["any", "a100", "big"]
    first = Catalogue((GPUType("older", "t4", 1), GPUType("younger", "t4", 2)))
    assert first.of(T4) == GPUType("older", "t4", 1)
    assert Catalogue((GPUType("v100", "v100"),)).of(T4) is None


def test_ranks_go_by_price_then_memory_and_equal_ones_share_a_rank():
    devices = [(A100, 40_448), (A100_80, 81_050), (A30, 24_062), (A100, 40_448)]
    prices = GPUType("a30", "a30", 9), GPUType("a100", "a100", 5)
    assert Catalogue(prices).ranks(devices) == {
        (A100, 40_448): 1,
        (A100_80, 81_050): 2,
        (A30, 24_062): 3,
    }
    assert Catalogue().ranks(devices)[A30, 24_062] == 1


@pytest.mark.parametrize(
    ("counts", "text"), [([2], "2"), ([2, 4], "2 or 4"), ([1, 2, 4], "1, 2 or 4")]
)
def test_numbers_in_words(counts: list[int], text: str):
    assert either(counts) == text
