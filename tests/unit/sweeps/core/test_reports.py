"""A report is read, or refused with a sentence for whoever wrote the program."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sweeps.core.builders import LOSS

from gpu_scheduler.sweeps.core.reports import BadReportError, TrialReport, parse_report


@pytest.mark.parametrize(
    ("body", "report"),
    [
        (b'{"step": 3, "metrics": {"val_loss": 0.5, "acc": 1}}', TrialReport(3, 0.5)),
        (b'{"step": 0, "metrics": {"val_loss": 2}}', TrialReport(0, 2.0)),
        (b'{"step": 4.0, "metrics": {"val_loss": -Infinity}}', TrialReport(4, -math.inf)),
    ],
)
def test_a_report_is_read(body, report):
    assert parse_report(body, LOSS) == report


def test_not_a_number_is_a_value_that_early_stopping_knows():
    assert math.isnan(parse_report(b'{"step": 1, "metrics": {"val_loss": NaN}}', LOSS).value)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "a JSON object such as"),
        (b"\xff\x00", "a JSON object such as"),
        (b"[]", "a JSON object such as"),
        (b"[" * 4000, "a JSON object such as"),
        (b'{"step": 1}', "a JSON object such as"),
        (b'{"step": 1, "metrics": [1]}', "a JSON object such as"),
        (b'{"metrics": {"val_loss": 1}}', "step must be"),
        (b'{"step": -1, "metrics": {"val_loss": 1}}', "step must be"),
        (b'{"step": true, "metrics": {"val_loss": 1}}', "step must be"),
        (b'{"step": 1.5, "metrics": {"val_loss": 1}}', "step must be"),
        (b'{"step": NaN, "metrics": {"val_loss": 1}}', "step must be"),
        (b'{"step": 1e400, "metrics": {"val_loss": 1}}', "step must be"),
        (b'{"step": 1, "metrics": {}}', "no val_loss; it has nothing"),
        (b'{"step": 1, "metrics": {"b": 1, "a": 2}}', "no val_loss; it has a, b"),
        (b'{"step": 1, "metrics": {"val_loss": "0.5"}}', "val_loss must be a number"),
        (b'{"step": 1, "metrics": {"val_loss": 1}}' + b" " * 4096, "at most 4,096 bytes"),
    ],
)
def test_what_is_no_report_is_refused_with_what_would_be_one(body, says):
    with pytest.raises(BadReportError, match=says):
        parse_report(body, LOSS)


NUMBERS = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["1e400", "-1e-400", "9" * 3000, "1e" + "9" * 300, "NaN", "-Infinity", "0" * 9]
    ),
)
VALUES = st.recursive(
    st.one_of(NUMBERS, st.sampled_from(["null", "true", '"x"', '"\\ud800"', "nan", "'"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]"),
        st.tuples(inner, inner).map(lambda two: f'{{"a":{two[0]},"a":{two[1]}}}'),
        st.integers(1, 1900).map(lambda depth: "[" * depth + "]" * depth),
    ),
    max_leaves=5,
)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.tuples(VALUES, VALUES, st.sampled_from(["", ',"step":1'])).map(
        lambda part: (
            f'{{"step":{part[0]},"metrics":{{"val_loss":{part[1]},"\\ud800":1}}{part[2]}}}'
        ).encode()
    ),
    VALUES.map(lambda value: f'{{"step":1,"metrics":{{"other\\udfff":{value}}}}}'.encode()),
)


@given(BODIES)
def test_nothing_makes_it_fail_otherwise(body):
    try:
        report = parse_report(body, LOSS)
    except BadReportError as error:
        assert len(json.dumps(str(error))) < 2000
    else:
        assert 0 <= report.step < 2**53 and isinstance(report.value, float)
