"""Memory pools: each of them is counted, however many there are."""

from collections.abc import Callable

import pytest
from tests.native.container import Container

MOST_POOLS = 1024  # that the library knows at once


@pytest.mark.parametrize("pools", [300, MOST_POOLS + 10])
def test_what_pools_take_is_charged_or_refused(
    container: Callable[..., Container], pools: int
) -> None:
    box = container(cap_mib=40000)
    process = box.gpu.start_call(
        "tests.native.pool_cases:one_piece_of_each", pools, **box.environment
    )
    try:
        assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
        context = box.gpu.used_mib()
        process.stdin.write("\n")
        process.stdin.flush()
        taken = int(process.stdout.readline())
        assert taken == min(pools, MOST_POOLS)
        assert box.gpu.used_mib() - context == box.ledger().held_mib() >= taken
        assert bool(box.log()) is (taken < pools)
    finally:
        process.kill()
        process.communicate()
