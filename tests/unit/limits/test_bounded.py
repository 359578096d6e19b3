"""What is remembered is bounded in bytes, whatever somebody asks about."""

import gc
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.limits.bounded import Bounded, Shared, digest, quoted, remembered


def test_what_was_used_lately_stays() -> None:
    known: Bounded[str, str] = Bounded(3 * 1200)
    for key in "abc":
        known.put(key, key.upper(), 1000)
    assert known.get("a") == "A"
    known.put("d", "D", 1000)
    assert [known.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_one_that_is_larger_than_all_is_not_kept_and_drives_nobody_out() -> None:
    known: Bounded[str, str] = Bounded(10_000)
    known.put("small", "x", 10)
    known.put("large", "x" * 20_000, 20_000)
    assert (known.get("small"), known.get("large"), len(known)) == ("x", None, 1)


steps = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5000), st.booleans()), max_size=60)


@given(steps)
def test_the_sum_is_never_above_the_bound_and_is_that_of_what_is_there(
    played: list[tuple[int, int, bool]],
) -> None:
    known: Bounded[int, int] = Bounded(8000)
    for key, size, dropped in played:
        if dropped:
            known.pop(key)
        else:
            known.put(key, size, size)
        assert known.bytes <= known.most_bytes
    for key in range(9):
        known.pop(key)
    assert (known.bytes, len(known)) == (0, 0)


def test_long_texts_are_worked_out_each_time() -> None:
    asked: list[str] = []

    @remembered(4, chars=10)
    def length(one: str, other: str = "") -> int:
        asked.append(one)
        return len(one + other)

    assert [length("short", "two") for _ in range(3)] == [8, 8, 8]
    assert [length("longer", "than") for _ in range(2)] == [10, 10]
    assert [length("longer", "than so") for _ in range(2)] == [13, 13]
    assert asked == ["short", "longer", "longer", "longer"]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Value:
    text: str


def test_equal_values_are_one_object_as_long_as_somebody_holds_it() -> None:
    shared: Shared[_Value] = Shared()
    one, other = shared.same(_Value("a")), shared.same(_Value("a"))
    assert one is other and shared.same(_Value("b")) == _Value("b")
    del one, other
    gc.collect()
    assert len(shared) == 0


def test_digests_tell_apart_where_one_text_ends() -> None:
    assert digest("a", "bc") != digest("ab", "c") != digest(("ab",), "c")
    assert len(digest("\ud800" * 1_000_000)) == 16


def test_no_more_than_a_hundred_characters_are_quoted() -> None:
    assert quoted("0.5") == "'0.5'"
    assert len(quoted("x" * 5000)) == 102
