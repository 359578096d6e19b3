"""Examples are the same in every run, in whichever parts; with ``EXPLORE_SEED`` they are others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit import parts

PARTS, EXAMPLES = 4, 42


def drawn(part: int) -> list[int]:
    """The examples of one part."""
    seen: list[int] = []

    @parts.in_parts(PARTS, examples=EXAMPLES)
    @given(st.integers(0, 10**9))
    def test(number: int) -> None:
        seen.append(number)

    test(part)
    return seen


def test_parts_have_no_fewer_examples_together_and_each_has_its_own() -> None:
    found = [drawn(part) for part in range(PARTS)]
    assert sum(map(len, found)) >= EXAMPLES
    assert len({tuple(each) for each in found}) == PARTS


def test_examples_are_the_same_in_every_run() -> None:
    assert drawn(1) == drawn(1)
    assert settings().derandomize is (parts.EXPLORE_SEED is None)


def test_another_seed_makes_other_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in (7, 7, 8):
        monkeypatch.setattr(parts, "EXPLORE_SEED", number)
        found.append(drawn(1))
    assert found[0] == found[1] != found[2]


def test_a_part_is_a_test_of_its_own() -> None:
    @parts.in_parts(PARTS, examples=EXAMPLES)
    @given(st.none())
    def holds(nothing: None) -> None:
        """It does."""

    marks = {mark.name: mark.args for mark in holds.pytestmark}  # type: ignore[attr-defined]
    assert list(marks["parametrize"][1]) == list(range(PARTS))
    assert "hypothesis" in marks, "so that make explore finds it"
    assert (holds.__name__, holds.__doc__) == ("holds", "It does.")
