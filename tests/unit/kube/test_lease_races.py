"""Whatever happens to candidates and to their writes, there are never two leaders."""

import asyncio
import random
from typing import Any

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.election_stage import Stage, lead
from tests.unit.kube.fake_leases import Trip

from gpu_scheduler.kube.lease import Elector


async def never_two_leaders(seed: int, candidates: int, trouble: float) -> None:
    """Candidates with slow, lossy ways to the server, killed and started at random.

    Checked at every step: whoever becomes leader does so after the last moment at which a write
    of any other may still be on its way.
    """
    dice = random.Random(seed)
    stage = Stage()
    writes_end: dict[str, float] = {}
    leaders_seen: set[str] = set()
    electors: dict[str, Elector] = {}
    running: dict[str, asyncio.Task[Any]] = {}

    def trip() -> Trip:
        if dice.random() >= trouble:
            return Trip(there=dice.random() * 0.1, back=dice.random() * 0.1)
        return Trip(there=dice.random() * 6, back=dice.random() * 6, arrives=dice.random() < 0.6)

    def check() -> None:
        now = stage.time.now
        for name, elector in electors.items():
            left = elector.remaining()
            if left > 0:
                if name not in leaders_seen or writes_end.get(name, 0.0) <= now:
                    for other, end in writes_end.items():
                        assert other == name or end <= now, f"{name} leads, {other} writes"
                leaders_seen.add(name)
                writes_end[name] = max(writes_end.get(name, 0.0), now + left)
        leading = [name for name, elector in electors.items() if elector.remaining() > 0]
        assert len(leading) <= 1, leading

    stage.time.after_each = check
    number = 0
    for _ in range(25):
        while len(running) < candidates:
            name = f"pod-{number}"
            number += 1
            electors[name] = stage.candidate(name, trip)
            running[name] = stage.run(lead(electors[name]))
        await stage.time.run_for(dice.random() * 20)
        for name, task in list(running.items()):
            if task.done() or dice.random() < 0.15:
                was_leading = electors[name].remaining() > 0
                await stage.stop(task)
                del running[name]
                elector = electors[name]
                if was_leading and dice.random() < 0.3:
                    writes_end.pop(name, None)  # a caller drains its writes before a release
                    releasing = stage.run(elector.release())
                    await stage.time.run_for(5)
                    await stage.stop(releasing)
                # Killed: its writes may still be under way until writes_end; it asks no more.
                del electors[name]
    trouble = 0.0
    await stage.time.run_for(30)  # what was under way in the trouble is over
    running = {name: task for name, task in running.items() if not task.done()}
    if not running:  # a process that lost the lease has ended, and is started again
        electors["last"] = stage.candidate("last", trip)
        running["last"] = stage.run(lead(electors["last"]))
    await stage.time.run_for(60)
    assert sum(electors[name].remaining() > 0 for name in running) == 1
    assert leaders_seen
    await stage.stop()


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    candidates=st.integers(1, 4),
    trouble=st.sampled_from([0.0, 0.1, 0.3, 0.6]),
)
def test_there_are_never_two_leaders(seed: int, candidates: int, trouble: float) -> None:
    uvloop.run(never_two_leaders(seed, candidates, trouble))
