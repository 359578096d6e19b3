from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.core.queue.changes import AHEAD, changes


class Item:
    """Equal to all others: only which one it is tells them apart."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ITEMS = [Item() for _ in range(4 * AHEAD)]
numbers = st.lists(st.integers(0, len(ITEMS) - 1), unique=True)


@given(numbers, numbers)
def test_who_left_and_who_came_is_told_whatever_the_order(before: list[int], now: list[int]):
    gone, new = changes([ITEMS[n] for n in before], [ITEMS[n] for n in now])
    assert sorted(map(id, gone)) == sorted(id(ITEMS[n]) for n in set(before) - set(now))
    assert sorted(map(id, new)) == sorted(id(ITEMS[n]) for n in set(now) - set(before))


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_so_it_is_where_many_leave_in_a_row_and_others_come(first: int, count: int, more: int):
    now = ITEMS[:first] + ITEMS[first + count :] + [Item() for _ in range(more)]
    gone, new = changes(ITEMS, now)
    assert list(map(id, gone)) == list(map(id, ITEMS[first : first + count]))
    assert list(map(id, new)) == list(map(id, now[len(now) - more :]))
