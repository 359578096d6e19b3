"""Kinds of work at random, many of each, and what is said of them: ``make advice``."""

import os

from tests.unit.usage.advice.judged import confusion

SEEDS = int(os.environ.get("ADVICE", "50"))
FIRST = int(os.environ.get("ADVICE_SEED", "1"))


def test_advice_is_right_and_silence_too() -> None:
    table = confusion(range(FIRST, FIRST + SEEDS))
    print(f"\n{table}")  # noqa: T201
    assert table.right >= 0.95
    assert table.silent >= 0.98
