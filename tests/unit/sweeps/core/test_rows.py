"""What is kept of a segment can be read back, and fits into one object of the store."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sweeps.core.builders import broken, done

from gpu_scheduler.api import search
from gpu_scheduler.sweeps.core import rows
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.rows import BadRowsError, Header, SegmentRows, decode, encode

MEBIBYTE = 1 << 20
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = NUMBERS | st.integers(-(2**53), 2**53) | st.booleans() | st.text(max_size=20)
OUTCOMES = st.builds(
    Outcome,
    st.integers(0, 99_999),
    st.sampled_from(TrialState),
    st.none() | NUMBERS,
    st.lists(st.none() | NUMBERS, max_size=3).map(tuple),
    st.text(max_size=30),
    st.none() | st.lists(VALUES, min_size=1, max_size=4).map(tuple),
)


@pytest.mark.long
@given(st.lists(OUTCOMES, unique_by=lambda o: o.trial))
def test_outcomes_are_read_back_as_they_were(outcomes):
    header = Header(3, ("val_loss", "acc"), ("lr",))
    found, again = decode(encode(header, outcomes))
    assert found == header
    assert again == sorted(outcomes, key=lambda o: o.trial)


def test_the_text_is_short_and_a_person_can_read_it():
    text = encode(Header(1, ("val_loss",)), [broken(1001), done(1000, 0.25)])
    assert text == (
        '{"v":1,"segment":1,"metrics":["val_loss"]}\n'
        '[1000,"Succeeded",0.25]\n'
        '[1001,"Failed",null,[],"exit code 1"]\n'
    )


def test_rows_that_come_one_by_one_give_the_same_text():
    header, outcomes = Header(0, ("a",)), [done(2, 1.0), broken(0), done(1, 3.0)]
    kept = SegmentRows(header)
    for outcome in [broken(2, "first try"), *outcomes]:
        kept.put(outcome)
        kept.text()
    assert kept.text() == encode(header, outcomes)


def test_equal_outcomes_of_different_types_are_not_mixed_up():
    rows = [Outcome(0, TrialState.STARTED, parameters=(value,)) for value in (True, 1, 1.0)]
    texts = [encode(Header(0), [row]).splitlines()[1] for row in rows]
    assert [json.loads(text)[-1] for text in texts] == [[True], [1], [1.0]]
    assert len(set(texts)) == 3


def widest(trial: int, message: str) -> Outcome:
    """No outcome takes more: numbers with 17 digits, as many as are allowed."""
    number = -2.2250738585072014e-308
    also, parameters = (number,) * search.MAX_ALSO, (number,) * search.MAX_ADAPTIVE
    return Outcome(trial, TrialState.NOT_FINITE, number, also, message, parameters)


NAMES = tuple(f"{'n' * 61}{i:02}" for i in range(search.MAX_ADAPTIVE))


@pytest.mark.long
@pytest.mark.parametrize("message", ["x" * 550, "\U0001f600" * 550, '"' * 550, "\x00" * 550])
def test_a_full_segment_fits_into_one_object_whatever_is_in_it(message):
    header = Header(99, NAMES[: 1 + search.MAX_ALSO], NAMES)
    text = encode(header, [widest(99_000 + i, message) for i in range(1000)])
    assert len(text.encode()) < rows.MAX_BYTES < MEBIBYTE
    _, found = decode(text)
    assert len(found) == 1000
    assert found[0].parameters == widest(0, "").parameters


def test_a_full_segment_fits_with_the_longest_texts_that_tpe_may_store():
    long = ("\u4e00" * (search.MAX_VALUES_BYTES // 3 - 1),)
    full = [replace(widest(99_000 + i, "x" * 550), parameters=long) for i in range(1000)]
    text = encode(Header(99, NAMES[: 1 + search.MAX_ALSO], NAMES[:1]), full)
    assert len(text.encode()) < rows.MAX_BYTES
    assert decode(text)[1][0].parameters == long


def test_messages_are_kept_in_full_while_there_is_room():
    outcomes = [broken(i, f"the result has no loss; it begins: {'x' * 200}") for i in range(1000)]
    text = encode(Header(0), outcomes)
    assert decode(text)[1] == outcomes
    assert len(text.encode()) < MEBIBYTE / 3


def test_a_usual_segment_is_far_below_the_limit():
    parameters = tuple(i / 7 for i in range(20))
    outcomes = [done(i, i / 3, parameters=parameters) for i in range(1000)]
    assert len(encode(Header(0, ("loss",), NAMES), outcomes).encode()) < MEBIBYTE / 2


GOOD = encode(Header(0, ("a",)), [done(0, 1.0)])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1"),
        ("nonsense", "line 1"),
        ("[]", "line 1"),
        ('{"v":2,"segment":0,"metrics":[]}', "version 2"),
        (GOOD + "[1", "line 3"),
        (GOOD + '[1,"Dancing"]', "line 3"),
        (GOOD + "{}", "line 3"),
        (GOOD + '[1,"Failed",null,[],"",[],1]', "line 3"),
        (GOOD + '[1,"Succeeded",NaN]', "line 3"),
        (GOOD + '[1,"Succeeded",1e999]', "line 3"),
        (GOOD + f'[1,"Succeeded",{"9" * 400}]', "line 3"),
        (GOOD + '[1,"Succeeded",1.0,[Infinity]]', "line 3"),
        (GOOD + '[Infinity,"Failed"]', "line 3"),
        (GOOD + '[-1,"Failed"]', "line 3"),
        (GOOD + r'[1,"Failed",null,[],"\ud800"]', "line 3"),
        (GOOD + '[1,"Started",null,[],"",[NaN]]', "line 3"),
        (GOOD + '[1,"Started",null,[],"",[[1]]]', "line 3"),
        (GOOD + '[1,"Started",null,[],"",[null]]', "line 3"),
        (GOOD + "[" * 100_000, "line 3"),
        ('{"v":1,"segment":Infinity,"metrics":[]}', "line 1"),
    ],
)
def test_a_text_of_somebody_else_is_refused_with_its_line(text, says):
    with pytest.raises(BadRowsError, match=says):
        decode(text)


def test_the_size_of_a_row_does_not_grow_with_its_trial_beyond_the_digits():
    assert len(json.loads(encode(Header(0), [done(99_999, 1.0)]).splitlines()[1])) == 3
