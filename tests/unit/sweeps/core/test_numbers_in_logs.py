"""A number is the result only where the line says it, whole.

Lines that people have lost trials by, and their brothers; the expression is that of docs/sweeps.md,
which finds a number also in the middle of a word.
"""

import pytest

from gpu_scheduler.api.search import Objective
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.runtime.log_search import search

LOSS = Objective("val_loss", also=("acc",))
DOCUMENTED = "val_loss=([-+.0-9eE]+)"
DIGITS = "val_loss=([0-9.]+)"
NOT_FINITE, MISSING = TrialState.NOT_FINITE, TrialState.RESULT_MISSING
BEFORE = "val_loss=0.5\n"  # of an earlier step: never the result


def read(log: str, pattern: str = DOCUMENTED) -> tuple[TrialState, float | None, str]:
    reading = search((BEFORE + log).encode(), pattern, LOSS)
    return reading.state, reading.value, reading.message


@pytest.mark.parametrize("pattern", [DOCUMENTED, r"val_loss=(\S+)"])
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("val_loss=0.4", 0.4),
        ("val_loss=1e-3", 0.001),
        ("val_loss=-2", -2.0),
        ("val_loss=+2", 2.0),
        ("val_loss=1.", 1.0),  # as numpy writes it
        ("val_loss=.25", 0.25),
        ("epoch 3 val_loss=0.4 acc=0.9", 0.4),
    ],
)
def test_a_number_is_read(pattern: str, line: str, value: float) -> None:
    assert read(line, pattern)[:2] == (TrialState.SUCCEEDED, value)


@pytest.mark.parametrize(
    "line",
    [
        "val_loss=0.4, acc=0.9",
        "val_loss=0.4; next",
        "val_loss=0.4)",
        "val_loss=0.4%",
        "(val_loss=0.4)",
        "\x1b[32mval_loss=0.4\x1b[0m",
        "\x1b[1mval_loss=\x1b[31m0.4\x1b[0m",
    ],
)
def test_what_stands_beside_it_is_no_part_of_it(line: str) -> None:
    assert read(line)[:2] == (TrialState.SUCCEEDED, 0.4)


@pytest.mark.parametrize("pattern", [DOCUMENTED, DIGITS, r"val_loss=(\S+)"])
@pytest.mark.parametrize(
    "line",
    [
        "val_loss=0,031",
        "val_loss=1_0",
        "val_loss=0.3.",
        "val_loss=0.5s",
        "val_loss=1.2.3",
        "val_loss=0x10",
        "val_loss=\u0661\u0662",  # Arabic digits
        "val_loss=1\u0662",
        "val_loss=",
        "val_loss= ",
        "val_loss=None",
    ],
)
def test_a_part_of_a_word_is_no_number(pattern: str, line: str) -> None:
    state, value, message = read(line, pattern)
    assert (state, value) == (MISSING, None)
    assert "val_loss=" in message, "the line is shown"


@pytest.mark.parametrize("pattern", [DOCUMENTED, DIGITS, r"(?P<val_loss>\S+) is val_loss"])
@pytest.mark.parametrize("number", ["nan", "NaN", "-inf", "Infinity", "inf"])
def test_what_is_not_finite_is_never_an_older_number(pattern: str, number: str) -> None:
    line = f"{number} is val_loss" if pattern.endswith("val_loss") else f"val_loss={number} acc=1"
    assert read(line, pattern)[0] is NOT_FINITE


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?i)VAL_LOSS=([0-9.]+)",
        r"(?:train|val)_loss=([0-9.]+)",
        r"[(\]]?val_loss\)?=(?P<val_loss>[0-9.]+)",
        r"(?:val_loss=([0-9.]+))?$",  # the group is inside another one: it matches every line
    ],
)
def test_whatever_stands_before_the_number(pattern: str) -> None:
    assert read("val_loss=nan", pattern)[1] is None


@pytest.mark.parametrize("pattern", [r"took ([0-9.]+)s", r"took (?P<val_loss>[0-9.]+)s$"])
def test_a_unit_that_the_expression_names_is_no_part_of_the_number(pattern: str) -> None:
    assert read("took 0.5s", pattern)[:2] == (TrialState.SUCCEEDED, 0.5)


def test_a_sign_before_what_the_expression_finds_belongs_to_it() -> None:
    assert read("-0.5", "([0-9.]+)")[:2] == (TrialState.SUCCEEDED, -0.5)


@pytest.mark.parametrize("after", ["done", "bye nan", "saved info.json", "nan_count=0"])
def test_other_lines_say_nothing(after: str) -> None:
    assert read(after)[:2] == (TrialState.SUCCEEDED, 0.5)
    assert read(after, "([0-9.]+)$")[1] in (0.5, 0.0)


def test_each_metric_of_a_line_is_judged() -> None:
    named = r"val_loss=(?P<val_loss>[0-9.]+).* acc=(?P<acc>[0-9.]+)"
    reading = search(b"val_loss=0.25 acc=0,9", named, LOSS)
    assert (reading.value, reading.also) == (0.25, (None,))
