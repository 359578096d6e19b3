"""Small allocations share pages of 2 MiB, which are charged as the driver takes them."""

from collections.abc import Callable

import pytest
from tests.native.container import Container
from tests.native.cuda import MIB

CASES = "tests.native.small_cases"
CAP = 64


def test_the_first_one_costs_a_page_and_the_next_ones_nothing_until_it_is_full(
    container: Callable[..., Container],
) -> None:
    # Four share a page, one begins another, one is large, and the last one shares.
    sizes = [1, 512, MIB - 1, MIB - 1024, 1, MIB, 1]
    free = container(cap_mib=CAP).call(f"{CASES}:by_turns", sizes)
    assert isinstance(free, list)
    taken = [CAP - each for each in free]
    assert taken == [2, 2, 2, 2, 4, 6, 6] + [6, 4, 4, 4, 4, 2, 0]


def test_they_go_with_their_context(container: Callable[..., Container]) -> None:
    box = container(cap_mib=CAP)
    assert box.call(f"{CASES}:with_their_context", 5) == [CAP, CAP - 2 - 5 * 4, CAP]


def test_threads_that_share_a_page_leave_nothing(container: Callable[..., Container]) -> None:
    box = container(cap_mib=8)  # and are refused now and then
    assert box.call(f"{CASES}:in_threads", 8, 2000) == 8


@pytest.mark.alone  # the failure meets whoever calls next
def test_an_allocation_is_charged_when_the_driver_cannot_say_for_which_device(
    container: Callable[..., Container],
) -> None:
    """A failure that the call before the allocation's own meets: it got past the cap, 30 of 30."""
    box = container(cap_mib=CAP)
    control = [box.gpu.build.fakegpu / "fakegpuctl", "set", box.gpu.uuids[0], "next-error", 999]
    words = [str(word) for word in control]
    assert box.call(f"{CASES}:while_the_driver_fails", words, 30) == CAP // 4
