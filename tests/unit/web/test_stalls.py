"""A loop that does not turn is seen."""

import asyncio

import pytest
from tests.unit.runtime.virtual_loop import VirtualLoop, virtual

from gpu_scheduler.web.stalls import SECONDS, StallWatch


@virtual
async def test_a_loop_that_is_blocked_shows_by_how_much() -> None:
    late: list[float] = []
    watch = StallWatch(late.append)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    await asyncio.sleep(3.5 * SECONDS)
    assert late == pytest.approx([0.0] * 3, abs=1e-9)
    loop.passed += 2.0  # something computes
    await asyncio.sleep(SECONDS / 4)
    assert late[3] == pytest.approx(2.0 - SECONDS / 2)
    await watch.cleanup()
    seen = len(late)
    await asyncio.sleep(1)
    assert len(late) == seen
