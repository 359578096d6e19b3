"""How many pods a job makes at once: those that could run, a few more, and never back and forth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.quota import UNBOUNDED
from gpu_scheduler.core.window import LEAST_SPARE, could_run, window

A100 = ("NVIDIA-A100-PCIE-40GB", 40_000)
T4 = ("Tesla-T4", 15_000)
MANY = 100_000

sizes = st.integers(1, MANY)
room = st.integers(0, MANY)


@pytest.mark.parametrize(
    ("asked", "models", "ceiling", "pods"),
    [
        ((DeviceRequest(0, 1, 500),), (), UNBOUNDED, 12),
        ((DeviceRequest(0, 1, 500),), (), 4000, 8),
        ((DeviceRequest(0, 2, 1000),), (), UNBOUNDED, 3),
        ((DeviceRequest(0, 1, 1000),), ("t4",), UNBOUNDED, 2),
        ((DeviceRequest(0, 1, 1000),), ("h100",), UNBOUNDED, 0),
        ((DeviceRequest(0, 1, 0, 10_000),), (), UNBOUNDED, 4 * 4 + 2 * 1000 // 667),
        ((DeviceRequest(0, 1, 0, 10_000),), (), 1000, 4),
        ((), (), 4000, 4000),
    ],
)
def test_pods_that_could_run(
    asked: tuple[DeviceRequest, ...], models: tuple[str, ...], ceiling: int, pods: int
) -> None:
    assert could_run(asked, models, [A100] * 4 + [T4] * 2, ceiling) == pods


def test_a_hundred_thousand_under_a_limit_of_four_make_tens() -> None:
    assert window(MANY, 4) == 4 + LEAST_SPARE
    assert window(3, 4) == 3


@given(sizes, room, st.none() | sizes, room)
def test_never_more_than_wanted_and_never_fewer_than_could_run(
    wanted: int, possible: int, now: int | None, placed: int
) -> None:
    assert min(wanted, possible) <= window(wanted, possible, now, placed) <= wanted


@given(sizes, room, sizes, room)
def test_no_pod_with_a_place_is_given_up(wanted: int, possible: int, now: int, placed: int) -> None:
    assert window(wanted, possible, now, placed) >= min(wanted, placed, now)


@given(sizes, room, st.none() | sizes, room)
def test_the_answer_stands_while_nothing_changes(
    wanted: int, possible: int, now: int | None, placed: int
) -> None:
    found = window(wanted, possible, now, placed)
    assert window(wanted, possible, found, min(placed, found)) == found


@given(sizes, st.integers(100, MANY), st.integers(-9, 9))
def test_a_small_change_of_what_is_possible_changes_nothing(
    wanted: int, possible: int, percent: int
) -> None:
    first = window(wanted, possible)
    assert window(wanted, possible + possible * percent // 100, first) == first


def test_it_follows_what_grows_and_what_shrinks_a_lot() -> None:
    assert window(MANY, 400, window(MANY, 40)) == 600
    assert window(MANY, 4, window(MANY, 400), placed=4) == 4 + LEAST_SPARE
    assert window(MANY, 4, window(MANY, 400), placed=300) == 300
