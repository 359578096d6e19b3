"""Numbers in annotations: whatever stands there, a number of ours comes out, or none."""

from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.api.moved import marks
from gpu_scheduler.api.names import MOVED_PREFIX
from gpu_scheduler.api.numbers import LARGEST, number


@given(st.integers(0, LARGEST))
def test_an_index_is_read_as_it_was_written(value: int) -> None:
    assert number(str(value)) == value


@given(st.text() | st.integers().map(str) | st.floats().map(str))
def test_anything_else_is_none_and_never_an_error(text: str) -> None:
    found = number(text)
    assert found is None or 0 <= found <= LARGEST


def test_thousands_of_digits_are_none() -> None:
    assert number("9" * 5000) is None
    assert number(str(LARGEST + 1)) is None
    assert number("٣") is None


def test_a_move_of_an_index_of_thousands_of_digits_was_never_written_by_us() -> None:
    text = "2026-01-01T00:00:00Z pod"
    assert list(marks({f"{MOVED_PREFIX}{'9' * 5000}": text, f"{MOVED_PREFIX}3": text})) == [3]
