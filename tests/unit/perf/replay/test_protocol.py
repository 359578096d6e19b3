"""The published protocol: who arrives, in which order, and what is counted."""

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.perf.replay.arrivals import arriving, in_random_order
from tests.perf.replay.lifetimes import COUNTED_FROM, ENDS, coming_and_going
from tests.perf.replay.result import churned, curve, filled
from tests.perf.replay.run import Step
from tests.perf.replay.trace import TraceNode
from tests.unit.builders import pod_shape

from gpu_scheduler.core.model.request import PodShape

PODS = [pod_shape(500, cpu_milli=i) for i in range(20)] + [
    pod_shape(1000, count=2),
    pod_shape(cpu_milli=7),
]


def milli(pods: list[PodShape]) -> int:
    return sum(pod.nominal_milli for pod in pods)


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(3, 40))
def test_the_demand_ends_just_below_what_was_asked_for(seed: int, gpus: int):
    stream = arriving(PODS, gpus * 1000, 1.3, Random(seed))
    assert 1300 * gpus - 2000 < milli(stream) <= 1300 * gpus


def test_every_pod_of_the_trace_arrives_once_before_any_is_drawn_again():
    stream = arriving(PODS, 20_000, 1.3, Random(1))
    assert Counter(stream[: len(PODS)]) == Counter(PODS)
    assert stream[: len(PODS)] != PODS
    assert set(stream[len(PODS) :]) <= set(PODS)


def test_a_trace_that_asks_for_more_loses_random_pods():
    stream = arriving(PODS, 5000, 1.0, Random(1))
    assert milli(stream) <= 5000
    assert not Counter(stream) - Counter(PODS)
    other = arriving(PODS, 5000, 1.0, Random(2))
    assert set(stream) != set(other)


def test_the_seed_decides_everything():
    nodes = [TraceNode(f"n{i}", 1, 1, 1, "T4") for i in range(50)]
    assert in_random_order(nodes, Random(3)) == in_random_order(nodes, Random(3))
    assert in_random_order(nodes, Random(3)) != in_random_order(nodes, Random(4))
    assert arriving(PODS, 40_000, 1.3, Random(3)) == arriving(PODS, 40_000, 1.3, Random(3))
    assert arriving(PODS, 40_000, 1.3, Random(3)) != arriving(PODS, 40_000, 1.3, Random(4))


def step(demand: int, placed: bool, allocated: int, time: float = 0.0, gpus: int = 1) -> Step:
    return Step(time, demand, gpus, placed, allocated, 1000)


def test_failed_pods_count_as_demand_and_the_figure_is_a_mean_over_arrivals():
    steps = [
        step(500, True, 500),
        step(496, False, 500),  # 99.6 % of the demand is here: rounds to 100
        step(4, True, 504),
        step(300, True, 804),  # 130 %
    ]
    result = filled(steps, 1000)
    assert result.unallocated_percent == 100 - (50 + 50.4) / 2
    assert curve(steps, 1000)[1] == (99.6, 50.0)
    assert (result.placed_pods, result.lost_pods) == (3, 1)
    assert round(result.lost_demand_percent, 3) == round(100 * 496 / 1300, 3)
    assert result.decisions_per_second == 1e6


def test_there_is_no_figure_when_the_demand_never_comes_to_100_percent():
    assert filled([step(500, True, 500)], 1000).unallocated_percent is None


def test_lost_multi_gpu_is_of_the_demand_of_pods_with_several_gpus():
    steps = [
        step(2000, False, 0, gpus=2),
        step(4000, True, 4000, gpus=4),
        step(500, False, 4000),
    ]
    result = filled(steps, 8000)
    assert round(result.lost_multi_gpu_percent, 3) == 33.333


def test_with_departures_the_first_lifetimes_do_not_count():
    steps = [step(500, False, 0, COUNTED_FROM - 0.1), step(500, True, 500, COUNTED_FROM)]
    result = churned(steps, 1000)
    assert (result.placed_pods, result.lost_pods) == (1, 0)
    assert result.unallocated_percent == 50


def test_pods_come_at_the_load_and_leave_after_they_came():
    capacity, load = 200_000, 0.9
    events = list(coming_and_going(PODS, capacity, load, Random(5)))
    assert events == list(coming_and_going(PODS, capacity, load, Random(5)))
    assert [e.time for e in events if e.pod_shape] == sorted(e.time for e in events if e.pod_shape)
    there: dict[int, PodShape] = {}
    at_arrivals = []
    for event in events:
        if event.pod_shape is None:
            del there[event.number]  # fails when it never came
        else:
            there[event.number] = event.pod_shape
            if event.time >= COUNTED_FROM:
                at_arrivals.append(milli(list(there.values())))
    assert max(e.time for e in events) <= ENDS
    assert 0.8 < sum(at_arrivals) / len(at_arrivals) / capacity < 1.0
