"""Whatever is in the cluster: the leader leads, no device is promised twice, healthy jobs run.

``HISTORIES`` says how many; each part is a test of its own, so that they run side by side.
"""

import asyncio
import os
from functools import lru_cache
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, seed, settings
from tests.unit.generated.histories import History, Outcome, Step, histories, play
from tests.unit.runtime.virtual_loop import VirtualLoop

from gpu_scheduler.runtime import status_writer

HISTORIES = int(os.environ.get("HISTORIES", "2000"))
SEED = int(os.environ.get("HISTORIES_SEED", "1"))
PARTS = 8
MOST_SILENT_SECONDS = 0.75  # two would do; nothing there takes so long


def played(history: History, *, hostile: bool) -> Outcome:
    # The writer of statuses looks twenty times a second: most of what a history would cost.
    slower = patch.object(status_writer, "_TICK_SECONDS", 0.25)
    with slower, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play(history, hostile=hostile))


@lru_cache(maxsize=10_000)
def _alone(jobs: tuple[tuple[float, int], ...], steps: str, faults: tuple[str, ...]) -> Outcome:
    parsed = [
        Step(what, number=int(number)) for what, number in (s.split() for s in steps.split(","))
    ]
    return played(History(jobs, tuple(parsed), faults), hostile=False)


def alone_of(history: History) -> Outcome:
    """What the healthy jobs come to by themselves; few healthy parts differ."""
    steps = ",".join(f"{s.what} {s.number}" for s in history.steps if s.alone)
    return _alone(history.jobs, steps, history.faults)


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
        alone = alone_of(history)
        assert alone.placed == alone.wanted
        assert beside.placed == alone.placed
        assert not beside.unexplained
        assert not beside.neglected
        assert not beside.disturbed
        if not any(history.faults) and all(step.possible for step in history.steps):
            assert beside.longest_silence[0] <= MOST_SILENT_SECONDS, beside.longest_silence
        if all(step.possible for step in history.steps):  # else one leader could read it once
            assert beside.charges == beside.charges_of_the_next

    holds()
