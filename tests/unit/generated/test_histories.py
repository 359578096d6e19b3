"""Whatever is in the cluster: the leader leads, no device is promised twice, healthy jobs run.

``HISTORIES`` says how many, and ``HISTORIES_SEED`` which.
"""

import asyncio
import os
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given
from tests.unit.generated.histories import (
    HEALTHY_NODES,
    History,
    Outcome,
    Step,
    histories,
    play,
)
from tests.unit.generated.worst import starts_never
from tests.unit.parts import EXPLORE_SEED, in_parts
from tests.unit.runtime.virtual_loop import VirtualLoop

from gpu_scheduler.runtime.status import status_writer

HISTORIES = int(os.environ.get("HISTORIES", "2000"))
SEED = int(os.environ.get("HISTORIES_SEED", "1")) if EXPLORE_SEED is None else EXPLORE_SEED
PARTS = 16
MOST_SILENT_SECONDS = 0.75  # two would do; nothing there takes so long


def played(history: History, *, hostile: bool) -> Outcome:
    # The writer of statuses looks twenty times a second: most of what a history would cost.
    slower = patch.object(status_writer, "_TICK_SECONDS", 0.25)
    with slower, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(play(history, hostile=hostile))


@lru_cache(maxsize=10_000)
def _alone(
    jobs: tuple[tuple[float, int], ...],
    steps: str,
    faults: tuple[str, ...],
    behind: tuple[tuple[str, float], ...],
) -> Outcome:
    parsed = [
        Step(what, number=int(number)) for what, number in (s.split() for s in steps.split(","))
    ]
    return played(History(jobs, tuple(parsed), faults, behind=behind), hostile=False)


def alone_of(history: History) -> Outcome:
    """What the healthy jobs come to by themselves; few healthy parts differ."""
    steps = ",".join(f"{s.what} {s.number}" for s in history.steps if s.alone)
    return _alone(history.jobs, steps, history.faults, history.behind)


@pytest.mark.long
@in_parts(PARTS, examples=HISTORIES, first_seed=SEED, suppress_health_check=list(HealthCheck))
@given(histories())
def test_a_bad_object_harms_nobody_else(history: History) -> None:
    beside = played(history, hostile=True)
    alone = alone_of(history)
    assert alone.placed == alone.wanted
    assert beside.placed == alone.placed
    # Whether a pod was there to be finished depends on how much time the other steps took.
    finished = {f"job{step.number}" for step in history.steps if step.what == "finish"}
    there, wanted = (
        {job: phase for job, phase in play.phases.items() if job not in finished}
        for play in (beside, alone)
    )
    assert there == wanted
    assert not beside.unexplained
    assert not beside.neglected
    assert not beside.disturbed
    if not any(history.faults) and all(step.possible for step in history.steps):
        assert beside.longest_silence[0] <= MOST_SILENT_SECONDS, beside.longest_silence
    if all(step.possible for step in history.steps):  # else one leader could read it once
        now, then = beside.charges, beside.charges_of_the_next
        if any(step.obj is not None and starts_never(step.obj) for step in history.steps):
            # It gets a place, loses it and gets one again, for ever, and others have it meanwhile.
            now, then = of_the_healthy(now), of_the_healthy(then)
        assert now == then


def of_the_healthy(charges: dict[str, Any]) -> dict[str, Any]:
    return {uid: charge for uid, charge in charges.items() if charge[0] in HEALTHY_NODES}
