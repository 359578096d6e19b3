"""When what is seen began: by its stamp if it was there before, else when it was seen."""

import pytest

from gpu_scheduler.state.jobs.beginnings import MOST_LAG_SECONDS, Beginnings

NOON = 1_767_268_800.0


def beginnings(*, live: bool) -> Beginnings:
    made = Beginnings(lambda: NOON)
    made.live = live
    return made


@pytest.mark.parametrize("off", [3600.0, -3600.0, 86_400.0, -86_400.0, 1e9, -1e9])
def test_what_is_seen_to_begin_begins_now_whatever_its_stamp_says(off: float) -> None:
    assert beginnings(live=True).of(NOON + off) == NOON
    assert beginnings(live=True).order(NOON + off) == NOON


def test_news_that_took_their_time_keep_their_order() -> None:
    live = beginnings(live=True)
    stamps = [NOON - MOST_LAG_SECONDS, NOON - 2, NOON - 1, NOON + 1]
    assert list(map(live.order, stamps)) == stamps
    assert list(map(live.of, stamps)) == [*stamps[:3], NOON]


def test_what_was_there_before_began_by_its_stamp_and_not_in_the_future() -> None:
    listed = beginnings(live=False)
    assert listed.of(NOON - 3600) == NOON - 3600
    assert listed.of(NOON + 3600) == NOON
    assert listed.order(NOON + 7200) > listed.order(NOON + 3600)


def test_a_simulation_believes_every_stamp() -> None:
    assert Beginnings(None).of(NOON) == NOON
