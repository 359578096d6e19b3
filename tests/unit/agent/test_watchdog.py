from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.builders import POD, container, seen, use

from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.agent.watchdog import OverCapContainer, Watchdog

KEY = (POD, 0)


class Looking:
    """A watchdog that is shown one container's memory, look by look."""

    def __init__(self, **settings: int) -> None:
        self.watchdog = Watchdog(**{"tolerance_mib": 512, **settings})
        self._times = count(1)

    def look(self, *mib: int | None) -> OverCapContainer | None:
        shown = use(*(seen(100 + n, each) for n, each in enumerate(mib)))
        return self.watchdog.update([shown], f"t{next(self._times)}").get(KEY)


def test_three_looks_in_a_row_are_needed() -> None:
    looking = Looking()
    assert [looking.look(30000) is not None for _ in range(5)] == [False, False, True, True, True]


def test_the_time_is_that_of_the_first_look_above() -> None:
    looking = Looking()
    looking.look(1)
    found = [looking.look(30000) for _ in range(4)][-1]
    assert found is not None
    assert found.since == "t2"
    assert looking.watchdog.violations == 1


def test_a_look_below_starts_the_count_again() -> None:
    looking = Looking()
    shown = [30000, 30000, 100, 30000, 30000]
    assert [looking.look(mib) for mib in shown] == [None] * 5


def test_it_is_well_again_after_as_many_looks_below() -> None:
    looking = Looking()
    for _ in range(3):
        looking.look(30000)
    assert [looking.look(100) is not None for _ in range(4)] == [True, True, False, False]
    assert looking.watchdog.violations == 1


def test_a_look_above_starts_the_count_of_those_below_again() -> None:
    looking = Looking()
    for _ in range(3):
        looking.look(30000)
    shown = [100, 100, 30000, 100, 100, 100]
    assert [looking.look(mib) is not None for mib in shown] == [True] * 5 + [False]
    assert looking.watchdog.violations == 1


def test_what_the_driver_does_not_know_changes_nothing() -> None:
    looking = Looking()
    shown = [30000, None, 30000, None, None, 30000]
    assert [looking.look(mib) is not None for mib in shown] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("mib", "above"),
    [
        ((20000,), False),
        ((20512,), False),
        ((20513,), True),
        ((10256, 10256), False),
        ((10512, 10512), False),
        ((10513, 10512), True),
        ((), False),
    ],
)
def test_each_process_may_have_a_context_above_the_cap(mib: tuple[int, ...], above: bool) -> None:
    looking = Looking(samples=1)
    assert (looking.look(*mib) is not None) == above


def test_the_tolerance_does_not_grow_without_end() -> None:
    looking = Looking(samples=1)
    assert looking.look(*[(20000 + 8 * 512) // 64] * 64) is None
    assert looking.look(*[(20000 + 8 * 512) // 64 + 1] * 64) is not None


def test_the_message_has_numbers_and_stays_as_it_was() -> None:
    looking = Looking(samples=1)
    first, second = looking.look(30000), looking.look(31000)
    assert first is not None
    assert second is not None
    assert "holds 30000 MiB" in first.message
    assert "cap is 20000 MiB" in first.message
    assert second.message == first.message
    assert first.pids == (100,)


def test_a_container_that_ended_is_forgotten() -> None:
    watchdog = Watchdog(tolerance_mib=0, samples=2)
    shown: list[ContainerUse] = [use(seen(1, 30000))]
    watchdog.update(shown, "t1")
    watchdog.update([], "t2")
    assert watchdog.update(shown, "t3") == {}


def test_neighbours_are_judged_apart() -> None:
    watchdog = Watchdog(tolerance_mib=0, samples=1)
    calm = use(seen(2, 10), of=container(uid="calm"))
    assert list(watchdog.update([use(seen(1, 30000)), calm], "t")) == [KEY]


@given(st.lists(st.sampled_from([100, 30000, None]), max_size=40))
def test_never_over_without_three_known_looks_above(shown: list[int | None]) -> None:
    looking = Looking()
    above = 0
    for mib in shown:
        above = above + 1 if mib == 30000 else above
        found = looking.look(mib)
        assert found is None or above >= 3
