"""Every way in which a program can leave its result, or fail to, has a state and a sentence."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sweeps.core.builders import LOSS

from gpu_scheduler.api.search import Objective
from gpu_scheduler.sweeps.core.outcome import MESSAGE_CHARS, TrialState, excerpt
from gpu_scheduler.sweeps.core.results import read_log, read_message

MISSING, NOT_FINITE = TrialState.RESULT_MISSING, TrialState.NOT_FINITE


def as_answered(left: bytes) -> str:
    """What the API server says of the bytes that a program left: a node keeps the last ones."""
    return left[-4096:].decode(errors="replace")


RIGHT = {
    "a line": (b'{"val_loss": 0.12}\n', 0.12),
    "without a newline": ('{"val_loss": 0.12}', 0.12),
    "an integer": (b'{"val_loss": 3}', 3.0),
    "two lines: the last counts": (b'{"val_loss": 1}\n{"val_loss": 2}\n', 2.0),
    "the last valid one": (b'{"val_loss": 1}\nepoch 3 done\n[1]\n{"val_loss": \n', 1.0),
    "after garbage": (b'\xff\xfe\x00\n{"val_loss": 4}', 4.0),
    "windows lines": (b'{"val_loss": 5}\r\n', 5.0),
    "as long as fits": (b'{"val_loss": 6}' + b" " * 4081, 6.0),
    "cut above its last line": (b"x" * 4080 + b'\n{"val_loss":7}', 7.0),
    "cut within a character": (as_answered(("é" * 3000 + '\n{"val_loss":8}').encode()[1:]), 8.0),
    "in no known encoding": (as_answered(b"\xe9" * 2000 + b'\n{"val_loss":9}'), 9.0),
    "after a mark of the byte order": (b'\xef\xbb\xbf{"val_loss": 1}\n', 1.0),
}
WRONG = {
    "nothing": (None, MISSING, "without writing to $GPUJOB_RESULT_FILE"),
    "empty": (b"", MISSING, "without writing"),
    "blank": (b" \n\t\n", MISSING, "without writing"),
    "a byte too long": (b'{"val_loss": 6}' + b" " * 4082, MISSING, "has 4,097 bytes; 4,096 fit"),
    "what a node leaves of too much": (
        (b'{"val_loss": 1, "pad": "' + b"x" * 4072 + b'"}')[-4096:],
        MISSING,
        "only the end is kept",
    ),
    "binary": (bytes(range(256)), MISSING, "no line that is a JSON object; it begins: "),
    "text": (b"loss was fine", MISSING, "it begins: loss was fine"),
    "no object": (b"0.12", MISSING, "no line that is a JSON object"),
    "other metrics": (b'{"acc": 1, "b": 2}', MISSING, "has no val_loss; it has acc, b"),
    "an empty object": (b"{}", MISSING, "it has nothing"),
    "the last line lacks it": (b'{"val_loss": 1}\n{"a": 1}', MISSING, "has no val_loss"),
    "a string": (b'{"val_loss": "0.1"}', MISSING, "val_loss is a string, not a number"),
    "a boolean": (b'{"val_loss": true}', MISSING, "val_loss is true or false"),
    "null": (b'{"val_loss": null}', MISSING, "val_loss is null"),
    "a list": (b'{"val_loss": [1]}', MISSING, "val_loss is a list"),
    "an object": (b'{"val_loss": {}}', MISSING, "val_loss is an object"),
    "NaN": (b'{"val_loss": NaN}', NOT_FINITE, "val_loss is nan"),
    "infinity": (b'{"val_loss": -Infinity}', NOT_FINITE, "val_loss is -inf"),
    "a number past all doubles": (b'{"val_loss": 1e999}', NOT_FINITE, "val_loss is inf"),
    "an integer past all doubles": (
        b'{"val_loss": -1' + b"0" * 400 + b"}",
        NOT_FINITE,
        "val_loss is -inf",
    ),
    "a tower of brackets": (b'{"a":' + b"[" * 4000, MISSING, "no line that is a JSON object"),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_result_is_read(case):
    message, value = RIGHT[case]
    reading = read_message(message, LOSS)
    assert (reading.state, reading.value, reading.message) == (TrialState.SUCCEEDED, value, "")


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_result_has_a_state_and_a_sentence(case):
    message, state, says = WRONG[case]
    reading = read_message(message, LOSS)
    assert (reading.state, reading.value) == (state, None)
    assert says in reading.message


def test_without_an_objective_nothing_is_asked_for():
    assert read_message(b"\xff", None).state is TrialState.SUCCEEDED
    assert read_log("", lambda line: None, None).state is TrialState.SUCCEEDED


def test_other_metrics_are_kept_where_they_are_numbers():
    objective = Objective("val_loss", also=("acc", "f1", "auc"))
    reading = read_message(b'{"val_loss": 1, "acc": 0.5, "f1": "x", "auc": NaN}', objective)
    assert reading.also == (0.5, None, None)


@given(st.binary(max_size=5000) | st.text(max_size=5000))
def test_no_message_makes_it_fail(message):
    reading = read_message(message, LOSS)
    assert (reading.value is not None) == (reading.state is TrialState.SUCCEEDED)
    assert len(reading.message) < MESSAGE_CHARS + 400


def find_loss(line):
    match = re.search(r"loss=(\S+)", line)
    return {"val_loss": match[1]} if match else None


@pytest.mark.parametrize(
    ("tail", "state", "value"),
    [
        ("loss=1\nloss=0.5\nbye\n", TrialState.SUCCEEDED, 0.5),
        ("loss=1e-3", TrialState.SUCCEEDED, 0.001),
        ("loss=nan", NOT_FINITE, None),
        ("loss=low", MISSING, None),
        ("nothing", MISSING, None),
        ("", MISSING, None),
    ],
)
def test_the_last_line_of_a_log_that_matches_counts(tail, state, value):
    reading = read_log(tail, find_loss, LOSS)
    assert (reading.state, reading.value) == (state, value)


def test_an_excerpt_is_one_short_printable_line():
    assert excerpt("a\x00b\n\tc") == "a b c"
    assert len(excerpt("x" * 5000)) == MESSAGE_CHARS
    assert excerpt("x" * MESSAGE_CHARS) == "x" * MESSAGE_CHARS
