import pytest
from hypothesis import given
from tests.unit.builders import shape
from tests.unit.core.packing.mixes import mixes

from gpu_scheduler.core.model.request import DeviceRequest, NodeFilter, Shape
from gpu_scheduler.core.packing.history import LEAST_STEP, MOST_PODS, History
from gpu_scheduler.core.packing.mix import DEFAULT_COUNTS, Mix, mix_of
from gpu_scheduler.core.packing.policy import WEIGHT


@given(mixes())
def test_the_weights_of_the_typical_shapes_sum_exactly(mix: Mix):
    assert sum(weight for _, weight in mix.typical) == WEIGHT


def test_the_most_frequent_shapes_that_cover_95_percent_are_typical():
    mix = mix_of({shape(500): 60, shape(1000): 35, shape(250): 5})
    assert mix.typical == ((shape(500), 6316), (shape(1000), 3684))
    assert len(mix.wanted) == 3  # rare ones count for scarcity


def test_the_order_of_the_counts_does_not_matter():
    counts = {shape(100 * i): 7 for i in range(1, 9)}
    one, other = mix_of(counts), mix_of(dict(reversed(counts.items())))
    assert (one.typical, one.wanted) == (other.typical, other.wanted)


def test_memory_tells_shapes_apart_only_where_nodes_are_weighed():
    mix = mix_of({shape(500, memory_bytes=1 << 30): 1, shape(500, memory_bytes=2 << 30): 1})
    assert [each for each, _ in mix.typical] == [shape(500)]
    assert len(mix.wanted) == 2


@pytest.mark.parametrize(
    ("pod", "counts_as"),
    [
        (
            shape(containers=[DeviceRequest(0, 1, 300), DeviceRequest(1, 2, 500)]),
            shape(500, count=3),
        ),
        (shape(containers=[DeviceRequest(2, 1, 300)]), shape(300)),
        (shape(300, where=NodeFilter(selector=(("zone", "a"),))), shape(300)),
    ],
)
def test_several_requests_count_as_one_and_choices_of_nodes_are_forgotten(
    pod: Shape, counts_as: Shape
):
    assert [each for each, _ in mix_of({pod: 1}).typical] == [counts_as]


def test_the_mix_is_learned_from_what_is_placed_and_the_default_fades():
    history = History()
    assert history.mix.typical == mix_of(DEFAULT_COUNTS).typical
    assert not history.note({shape(810): LEAST_STEP - 1})
    assert history.note({shape(810): 60_000})
    assert history.mix.typical == ((shape(810), WEIGHT),)


def test_what_people_tried_yesterday_does_not_turn_the_policy_round():
    history = History()
    history.note({shape(700): 100})
    usual = mix_of(DEFAULT_COUNTS).typical
    assert history.mix.typical[: len(usual)] == usual


def test_the_mix_follows_a_workload_that_changes():
    history = History()
    history.note({shape(810): MOST_PODS})
    for _ in range(20):
        history.note({shape(330): MOST_PODS // 4})
    assert history.mix.typical == ((shape(330), WEIGHT),)


def test_the_mix_stays_as_it_is_between_its_steps():
    history = History()
    history.note({shape(810): 10_000})
    before = history.mix
    assert not history.note({shape(330): 1000})
    assert history.mix is before
