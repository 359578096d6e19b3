"""Writes that failed are tried again ever more seldom, and said once."""

import pytest

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.failures import Failures

REFUSED = errors.Forbidden(403, "Forbidden", "not on Mondays")
AWAY = errors.Unavailable(message="no answer")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("error", "tries"),
    [(REFUSED, [0, 30, 90, 210, 450, 930, 1530]), (AWAY, [0, 1, 3, 7, 15, 31, 61, 91])],
)
def test_it_is_tried_ever_more_seldom(error: errors.ApiError, tries: list[int]) -> None:
    clock = Clock()
    failures: Failures[str] = Failures(clock)
    found = []
    for second in range(tries[-1] + 1):
        clock.now = float(second)
        if failures.may_try("a"):
            found.append(second)
            failures.note("a", error)
        assert failures.may_try("b")
    assert found == tries


def test_only_another_reason_is_news() -> None:
    failures: Failures[str] = Failures(Clock())
    said = [failures.note("a", error) for error in (REFUSED, REFUSED, AWAY, AWAY, REFUSED)]
    assert said == [True, False, True, False, True]
    failures.over("a")
    assert failures.may_try("a") and failures.note("a", REFUSED)


def test_after_a_success_the_delay_starts_anew() -> None:
    failures: Failures[str] = Failures(Clock())
    for _ in range(5):
        failures.note("a", AWAY)
    failures.over("a")
    failures.note("a", AWAY)
    assert failures.left_seconds("a") == 1.0


def test_what_nobody_asks_about_any_more_is_forgotten() -> None:
    clock = Clock()
    failures: Failures[int] = Failures(clock)
    for key in range(5000):
        clock.now = float(key)
        failures.note(key, AWAY)
    assert len(failures._failures) < 1100


def test_of_very_many_each_has_few_bytes_however_long_the_answers_are() -> None:
    failures: Failures[int] = Failures(Clock())
    for key in range(3000):
        failures.note(key, errors.Unavailable(message=f"{key}" * 500))
    assert sum(len(each.why) for each in failures._failures.values()) < 3000 * 20
