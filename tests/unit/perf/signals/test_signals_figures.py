import pytest
from tests.perf.sharing.figures import percentile
from tests.perf.signals.figures import (
    Notes,
    histogram,
    milliseconds,
    notes_of,
    planning,
    samples,
)


def test_notes_are_read_and_a_line_that_was_cut_off_is_not() -> None:
    notes = notes_of("cycle 10.0 0.020 0.010 1\nring 10.05 0.002\nring 10.1")
    assert notes == Notes([(10.0, 0.02, 0.01, 1)], [(10.05, 0.002)])


def test_only_cycles_that_place_are_compared_and_all_are_summed_up() -> None:
    cycles = [(1.0, 0.020, 0.010, 1), (2.0, 0.040, 0.030, 2), (3.0, 0.5, 0.2, 0)]
    found = planning(Notes(cycles, []), seconds=10.0)
    assert found["wall"] == {
        "count": 2, "meanMs": 30.0, "p50Ms": 20.0, "p99Ms": 40.0, "maxMs": 40.0,
    }  # fmt: skip
    assert found["cpu"]["meanMs"] == 20.0
    assert found["percentOfACore"] == 2.4


def test_a_span_has_its_begin_and_not_its_end() -> None:
    notes = Notes([(1.0, 0.1, 0.1, 1), (2.0, 0.1, 0.1, 1)], [(1.5, 0.0), (2.0, 0.0)])
    inside = notes.between(1.0, 2.0)
    assert (len(inside.cycles), len(inside.rings)) == (1, 1)


def test_rings_of_a_scrape_are_those_within_it_and_the_one_after_it() -> None:
    notes = Notes([], [(0.9, 1.0), (1.1, 2.0), (2.04, 3.0), (2.2, 4.0)])
    assert notes.late_within([(1.0, 2.0)], after=0.05) == [2.0, 3.0]


@pytest.mark.parametrize(("percent", "value"), [(50, 2.0), (75, 3.0), (99, 4.0), (0, 1.0)])
def test_a_percentile_is_the_least_value_that_so_many_are_not_above(
    percent: float, value: float
) -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], percent / 100) == value


def test_of_nothing_all_figures_are_zero() -> None:
    assert set(milliseconds([]).values()) == {0}


def test_samples_are_those_of_the_metric_of_this_very_name() -> None:
    text = '# HELP a x\na{x="1",y="b c"} 2.0\na_total 3.0\na 4.0\n'
    assert samples(text, "a") == [({"x": "1", "y": "b c"}, 2.0), ({}, 4.0)]


def _text(small: int, middle: int, large: int, seconds: float) -> str:
    counts = {"0.01": small, "0.02": small + middle, "+Inf": small + middle + large}
    lines = [f'c_bucket{{le="{bound}"}} {count}' for bound, count in counts.items()]
    return "\n".join([*lines, f"c_count {small + middle + large}", f"c_sum {seconds}"])


def test_a_histogram_is_of_what_came_in_between() -> None:
    found = histogram(_text(100, 0, 0, 0.1), _text(110, 10, 0, 0.4), "c")
    assert found == {"count": 20.0, "meanMs": 15.0, "p50Ms": 10.0, "p99Ms": 19.8}


def test_what_is_above_all_bounds_counts_as_the_last_of_them() -> None:
    assert histogram(_text(0, 0, 0, 0.0), _text(1, 0, 9, 9.0), "c")["p99Ms"] == 20.0


def test_a_ring_that_a_planning_cycle_made_late_says_nothing_of_the_rest() -> None:
    cycles = [(1.0, 0.2, 0.1, 1), (3.0, 0.1, 0.1, 0)]
    by_planning, beside = [(1.25, 0.2), (3.1, 0.05)], [(0.9, 0.01), (1.31, 0.01), (2.0, 0.3)]
    found = Notes(cycles, [*by_planning, *beside]).beside_planning()
    assert found.rings == beside
