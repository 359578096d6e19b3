"""Kinds of work at random, many of each, and what is said of them: ``make advice``."""

import os

from tests.unit.usage.advice.judged import confusion
from tests.unit.usage.advice.kinds import FROM_SLIGHT

SEEDS = int(os.environ.get("ADVICE", "50"))
FIRST = int(os.environ.get("ADVICE_SEED", "1"))
NUMBERS = range(FIRST, FIRST + SEEDS)


def test_advice_is_right_and_silence_too() -> None:
    table = confusion(NUMBERS)
    print(f"\n{table}")  # noqa: T201
    assert table.right >= 0.95
    assert table.silent >= 0.98


def test_it_is_right_of_slight_cases_too() -> None:
    """The cause has to be named, however little it costs."""
    table = confusion(NUMBERS, FROM_SLIGHT)
    print(f"\nfrom slight to marked:\n{table}")  # noqa: T201
    assert table.right >= 0.95
    assert table.silent >= 0.98
