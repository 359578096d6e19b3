"""Every list that a policy walks, as long as the API server answers it: ``make policies``.

What is in the old object is left out: it has been stored, so it is no larger than etcd takes.
"""

import json
from copy import deepcopy

import pytest
from tests.api import protobuf
from tests.api.admission import long_lists
from tests.api.admission.bounded import Row, rows
from tests.api.admission.test_policy_bounds import (
    JSON,
    encodings,
    names_the_list,
    refused,
    sent,
    users,
)
from tests.api.caller import Caller

__all__ = ["users"]

BYTES = 3 * 1024 * 1024 - 4096  # what the API server takes, but for what is around the list
# More of these cost the API server half a minute, and gigabytes, with no policy of the chart as
# well; then its own time is up. Seen without policies: 143,746 gates 34 s, 451,617 ports 34 s.
MOST_OF_A_MAP, MOST_CONTAINERS, MOST_BY_KEY = 30_000, 10_000, 50_000
BY_KEY = ("schedulingGates", "volumes", "volumeMounts", "ports")  # lists that it merges by a key
CASES = [
    (row, content)
    for row in rows()
    if not row.is_old and row.body
    for content in dict.fromkeys([JSON, *encodings(row)])
]


def largest(row: Row, content: str) -> int:
    """The entries with which the request is as long as the API server takes it."""

    def length(entries: int) -> int:
        body = deepcopy(row.body)
        long_lists.grow(body, row.field, entries)
        return len(protobuf.encoded(body) if content != JSON else json.dumps(body).encode())

    start = 10_000
    each = (length(start) - length(start - 1000)) / 1000
    found = start + int((BYTES - length(start)) / (each + 2))  # numbers get longer
    if row.says in long_lists.MAPS:
        return min(found, MOST_OF_A_MAP)
    if row.says.endswith(BY_KEY):
        return min(found, MOST_BY_KEY)
    return min(found, MOST_CONTAINERS) if row.says.endswith("ontainers") else found


@pytest.mark.parametrize(("row", "content"), CASES, ids=str)
def test_the_largest_request_is_refused(users: dict[str, Caller], row: Row, content: str) -> None:
    answer = sent(users, row, largest(row, content), content)
    assert refused(answer), answer
    assert names_the_list(row, answer)
