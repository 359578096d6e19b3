import pytest
from tests.perf.queue_figures import (
    after_last,
    between,
    flat,
    held_seconds,
    idle_percent,
    share_within,
    summary,
)
from tests.perf.queue_watch import Span


def test_a_place_is_held_from_the_binding_to_the_end_within_the_window() -> None:
    spans = [
        Span("before", "churn", bound=1.0, ended=9.0),
        Span("over the begin", "churn", bound=8.0, ended=12.0),
        Span("inside", "churn", bound=13.0, ended=14.5),
        Span("over the end", "churn", bound=19.0, ended=25.0),
        Span("runs on", "churn", bound=18.0),
        Span("waits", "churn"),
        Span("after", "churn", bound=21.0, ended=22.0),
        Span("deleted while it waited", "churn", ended=15.0),
    ]
    assert held_seconds(spans, 10.0, 20.0) == pytest.approx(2.0 + 1.5 + 1.0 + 2.0)


def test_what_nobody_held_is_idle() -> None:
    assert idle_percent(480.0, places=16, seconds=60.0) == 50.0
    assert idle_percent(960.0, places=16, seconds=60.0) == 0.0


def test_jobs_that_never_got_a_verdict_count_as_late() -> None:
    assert share_within([1.0, 5.0, 5.1], 5.0, 4) == 50.0


def test_what_came_before_the_last_apply_was_answered_took_no_time() -> None:
    assert after_last([1.0, 2.0], 3.0) == 0.0
    assert after_last([1.0, 4.5], 3.0) == 1.5


def test_the_begin_of_a_window_is_outside_and_its_end_inside() -> None:
    assert between([1.0, 1.5, 2.0, 2.5], 1.0, 2.0) == 2


def test_only_numbers_become_figures() -> None:
    found = dict(flat({"a": {"b": 1, "c": None, "d": "x", "e": True}, "f": 2.5}))
    assert found == {"a.b": 1.0, "f": 2.5}


def test_a_run_without_a_figure_does_not_count_for_it() -> None:
    runs = [
        {"scene": "waiting", "contender": "old", "figures": {"judged_seconds": None, "rss": 5}},
        {"scene": "waiting", "contender": "old", "figures": {"judged_seconds": 7.0, "rss": 7}},
        {"scene": "waiting", "contender": "old", "error": "TimeoutError"},
    ]
    found = summary(runs)["waiting"]["old"]
    assert found["judged_seconds"] == {"median": 7.0, "min": 7.0, "max": 7.0, "runs": 1}
    assert found["rss"] == {"median": 6.0, "min": 5.0, "max": 7.0, "runs": 2}
