"""Indexes in a Job's status: whatever stands there, at most as many as the Job has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.state.jobs.job import count_indexes, index_ranges

HOSTILE = ["5-3", "x", "-", "1-", "-1", "9" * 5000, "0-" + "9" * 5000, "1-2-3", ",,,", "+1", "1_0"]


def walked(text: str, size: int) -> list[int]:
    return [index for each in index_ranges(text, size) for index in each]


@given(st.sets(st.integers(0, 99)))
def test_what_kubernetes_writes_is_read(indexes: set[int]) -> None:
    parts: list[str] = []
    for index in sorted(indexes):
        if index - 1 in indexes:
            continue
        last = index
        while last + 1 in indexes:
            last += 1
        parts.append(str(index) if last == index else f"{index}-{last}")
    assert walked(",".join(parts), 100) == sorted(indexes)


@given(st.text("0123456789-,x", max_size=300), st.integers(0, 50))
def test_of_any_text_at_most_the_jobs_own_indexes_count_each_once(text: str, size: int) -> None:
    found = walked(text, size)
    assert found == sorted(set(found)) and set(found) <= set(range(size))
    assert count_indexes(text, size) == len(found)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_index_is_left_out(text: str) -> None:
    assert walked(f"{text},7", 5000) in ([7], [])


def test_a_long_range_costs_what_a_short_one_does() -> None:
    (only,) = index_ranges("0-4999999", 1000)
    assert only == range(1000)
    assert count_indexes("0-2147483647", 100_000) == 100_000
    assert count_indexes("0-99,0-99,0-99", 100) == 100
