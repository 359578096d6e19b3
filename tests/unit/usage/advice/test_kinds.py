"""Kinds of work at random, few of each; ``make advice`` plays many (``confusion.py``)."""

from collections.abc import Iterator

import pytest
from tests.unit.usage.advice.judged import Confusion, confusion
from tests.unit.usage.advice.kinds import KINDS

from gpu_scheduler.usage.advice.finding import RuleName


@pytest.fixture(scope="module")
def table() -> Iterator[Confusion]:
    found = confusion(range(4))
    print(f"\n{found}")  # noqa: T201
    yield found


@pytest.mark.long
def test_advice_is_right(table: Confusion) -> None:
    assert table.right >= 0.95


@pytest.mark.long
def test_silence_is_kept_where_it_is_right(table: Confusion) -> None:
    assert table.silent >= 0.98


def test_every_rule_is_right_for_some_kind() -> None:
    assert {rule for kind in KINDS for rule in kind.right} == set(RuleName)


@pytest.mark.long
def test_no_kind_is_wrong_most_of_the_time(table: Confusion) -> None:
    wrong = [kind for kind, _, _ in table.wrong]
    assert [kind for kind in set(wrong) if wrong.count(kind) > 2] == []
