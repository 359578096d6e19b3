import pytest
from hypothesis import given
from tests.unit.builders import pod_shape
from tests.unit.core.packing.workloads import target_workloads

from gpu_scheduler.core.model.request import DeviceRequest, NodeFilter, PodShape
from gpu_scheduler.core.packing.history import LEAST_STEP, MOST_PODS, History
from gpu_scheduler.core.packing.policy import WEIGHT
from gpu_scheduler.core.packing.target_workload import (
    DEFAULT_COUNTS,
    TargetWorkload,
    target_workload_of,
)


@given(target_workloads())
def test_the_weights_of_the_typical_pod_kinds_sum_exactly(workload: TargetWorkload):
    assert sum(weight for _, weight in workload.typical) == WEIGHT


def test_the_most_frequent_pod_kinds_that_cover_95_percent_are_typical():
    workload = target_workload_of({pod_shape(500): 60, pod_shape(1000): 35, pod_shape(250): 5})
    assert workload.typical == ((pod_shape(500), 6316), (pod_shape(1000), 3684))
    assert len(workload.wanted) == 3  # rare ones count for scarcity


def test_the_order_of_the_counts_does_not_matter():
    counts = {pod_shape(100 * i): 7 for i in range(1, 9)}
    one, other = target_workload_of(counts), target_workload_of(dict(reversed(counts.items())))
    assert (one.typical, one.wanted) == (other.typical, other.wanted)


def test_memory_tells_pod_kinds_apart_only_where_nodes_are_weighed():
    workload = target_workload_of(
        {pod_shape(500, memory_bytes=1 << 30): 1, pod_shape(500, memory_bytes=2 << 30): 1}
    )
    assert [each for each, _ in workload.typical] == [pod_shape(500)]
    assert len(workload.wanted) == 2


@pytest.mark.parametrize(
    ("pod", "counts_as"),
    [
        (
            pod_shape(containers=[DeviceRequest(0, 1, 300), DeviceRequest(1, 2, 500)]),
            pod_shape(500, count=3),
        ),
        (pod_shape(containers=[DeviceRequest(2, 1, 300)]), pod_shape(300)),
        (pod_shape(300, where=NodeFilter(selector=(("zone", "a"),))), pod_shape(300)),
    ],
)
def test_several_requests_count_as_one_and_choices_of_nodes_are_forgotten(
    pod: PodShape, counts_as: PodShape
):
    assert [each for each, _ in target_workload_of({pod: 1}).typical] == [counts_as]


def test_the_workload_is_learned_from_what_is_placed_and_the_default_fades():
    history = History()
    assert history.workload.typical == target_workload_of(DEFAULT_COUNTS).typical
    assert not history.note({pod_shape(810): LEAST_STEP - 1})
    assert history.note({pod_shape(810): 60_000})
    assert history.workload.typical == ((pod_shape(810), WEIGHT),)


def test_what_people_tried_yesterday_does_not_turn_the_policy_round():
    history = History()
    history.note({pod_shape(700): 100})
    usual = target_workload_of(DEFAULT_COUNTS).typical
    assert history.workload.typical[: len(usual)] == usual


def test_the_workload_follows_a_workload_that_changes():
    history = History()
    history.note({pod_shape(810): MOST_PODS})
    for _ in range(20):
        history.note({pod_shape(330): MOST_PODS // 4})
    assert history.workload.typical == ((pod_shape(330), WEIGHT),)


def test_the_workload_stays_as_it_is_between_its_steps():
    history = History()
    history.note({pod_shape(810): 10_000})
    before = history.workload
    assert not history.note({pod_shape(330): 1000})
    assert history.workload is before
