"""A clock that only goes forward, whatever the wall clock does, and says when that was set."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.kube.clock import Clock, Heard

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
HOUR, DAY, YEARS = 3600.0, 86_400.0, 30 * 365 * 86_400.0
STEPS = [HOUR, -HOUR, DAY, -DAY, YEARS, -YEARS]


class Machine:
    """One whose wall clock is at noon after a thousand seconds."""

    def __init__(self) -> None:
        self.passed, self.noon = 1000.0, NOON - 1000.0
        self.clock = Clock(lambda: self.passed, lambda: self.noon + self.passed)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_wall_clock_is_told_and_changes_no_time(step: float) -> None:
    machine = Machine()
    assert machine.clock.now() == NOON
    machine.passed += 10
    machine.noon += step
    assert machine.clock.now() == NOON + 10
    assert machine.clock.ahead_seconds() == step
    assert machine.clock.look() == step
    assert machine.clock.look() == 0.0
    assert machine.clock.steps == {"forward": int(step > 0), "back": int(step < 0)}


def test_it_is_said_how_large_a_step_is_and_which_way(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    with caplog.at_level(logging.WARNING):
        machine.noon -= HOUR
        machine.clock.look()
        machine.clock.look()
    (said,) = caplog.messages
    assert "set back by 3600 s:" in said and "now -3600 s from" in said


def test_ntp_that_steers_a_clock_is_no_step() -> None:
    machine = Machine()
    for _ in range(1000):
        machine.passed += 5
        machine.noon += 5 * 0.0005
        assert machine.clock.look() == 0.0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-1e9, 1e9)), max_size=20))
def test_time_never_goes_back(moves: list[tuple[float, float]]) -> None:
    machine, last = Machine(), NOON
    for passes, step in moves:
        machine.passed += passes
        machine.noon += step
        machine.clock.look()
        assert machine.clock.now() == pytest.approx(last + passes)
        last = machine.clock.now()


def test_it_begins_anew_where_the_wall_clock_is_by_then() -> None:
    machine = Machine()
    machine.noon += HOUR  # while this replica stood by
    machine.clock.begin()
    assert machine.clock.now() == NOON + HOUR
    assert machine.clock.look() == 0.0


def test_where_the_api_server_says_another_time_that_counts() -> None:
    machine = Machine()
    heard = Heard("Thu, 01 Jan 2026 11:00:00 GMT", at=900.0)  # 100 s ago
    machine.clock.begin(heard)
    ahead = machine.clock.ahead_seconds()
    assert ahead == pytest.approx(HOUR - 100, abs=1)
    assert machine.clock.now() == pytest.approx(NOON - HOUR + 100, abs=1)
    assert machine.clock.look() == 0.0
    assert machine.clock.stamp()[:17] == "2026-01-01T11:01:"


@pytest.mark.parametrize("date", ["Thu, 01 Jan 2026 12:00:01 GMT", "", "soon", "Thu, 99 Jan 2026"])
def test_else_our_own_wall_clock_counts(date: str) -> None:
    machine = Machine()
    machine.clock.begin(Heard(date, at=1000.0))
    assert machine.clock.now() == NOON
