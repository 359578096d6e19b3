"""What is nested without end is cut where nobody reads any more, and nothing else is changed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.kube.nesting import shallow

values = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\[]{},:\n'), max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=15,
)


def cut(value: Any, levels: int) -> Any:
    if not isinstance(value, list | dict):
        return value
    if levels == 0:
        return None
    if isinstance(value, list):
        return [cut(each, levels - 1) for each in value]
    return {key: cut(each, levels - 1) for key, each in value.items()}


@given(values, st.integers(1, 4))
def test_what_is_above_stays_as_it_was(value: Any, levels: int) -> None:
    assert json.loads(shallow(json.dumps(value).encode(), levels)) == cut(value, levels)


@pytest.mark.parametrize("depth", [301, 10_000])
def test_any_depth_can_be_read(depth: int) -> None:
    text = b'{"a":1,"deep":' + b"[" * depth + b"]" * depth + b',"b":2}'
    found = json.loads(shallow(text))
    assert (found["a"], found["b"]) == (1, 2)
