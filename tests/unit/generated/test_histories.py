"""Whatever is in the cluster: the leader leads, no device is promised twice, healthy jobs run.

``HISTORIES`` says how many; each part is a test of its own, so that they run side by side.
"""

import asyncio
import os

import pytest
from hypothesis import HealthCheck, given, seed, settings
from tests.unit.generated.histories import History, Outcome, histories, play
from tests.unit.runtime.virtual_loop import VirtualLoop

HISTORIES = int(os.environ.get("HISTORIES", "2000"))
SEED = int(os.environ.get("HISTORIES_SEED", "1"))
PARTS = 8


def played(history: History, *, hostile: bool) -> Outcome:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play(history, hostile=hostile))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_bad_object_harms_nobody_else(part: int) -> None:
    @seed(SEED * 1000 + part)
    @settings(
        max_examples=max(1, HISTORIES // PARTS),
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(histories())
    def holds(history: History) -> None:
        beside = played(history, hostile=True)
        alone = played(history, hostile=False)
        assert alone.placed == alone.wanted
        assert beside.placed == alone.placed
        assert not beside.unexplained
        assert beside.charges == beside.charges_of_the_next

    holds()
