"""Whoever sets a wall clock, by how much and which way: the same is decided at the same moments.

``HISTORIES_CLOCKS`` says how many histories, and ``HISTORIES_SEED`` which.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.generated import controllers
from tests.unit.generated.clock_steps import ClockSteps, Stepping
from tests.unit.generated.ours import gpujob
from tests.unit.generated.shares import template
from tests.unit.generated.sharing import Sharing
from tests.unit.generated.stage import ROOT
from tests.unit.generated.test_histories import SEED
from tests.unit.runtime.virtual_loop import VirtualLoop, clock

from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.runtime.status import status_writer

HISTORIES = int(os.environ.get("HISTORIES_CLOCKS", "20"))
PARTS = 2
EACH = max(1, HISTORIES // 2 // PARTS)  # of each kind


def played(
    seed: int, *, steps: bool, api: bool, counted: type[Clock] = Clock
) -> list[tuple[Any, ...]]:
    """One history: everything that was decided."""
    random.seed(seed)  # of what waits a little longer or shorter
    slower = patch.object(status_writer, "_TICK_SECONDS", 0.25)
    with slower, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        history = ClockSteps(seed, steps=steps, api=api)
        history.stage.clock = counted
        runner.run(history.play())
    return history.decided


@pytest.mark.long
@pytest.mark.parametrize("api", [False, True], ids=["leader and nodes", "one machine"])
@pytest.mark.parametrize("part", range(PARTS))
def test_clocks_that_are_set_change_no_decision(part: int, api: bool) -> None:
    decisions, first = 0, SEED * 1000 + part * EACH
    for seed in range(first, first + EACH):
        calm = played(seed, steps=False, api=api)
        assert played(seed, steps=True, api=api) == calm, f"seed {seed}"
        decisions += len(calm)
    assert decisions > 10 * EACH


async def _guarantee(sharing: Sharing) -> None:
    """One project has borrowed all GPUs; another one's job is owed one."""
    sharing.stage.scale("lab", "web", 4, template("1", controlled=True))
    await sharing.stage.passes(10)
    own = gpujob("own", "shop", gpu=1)
    sharing.server.put(f"{ROOT}/namespaces/shop/gpujobs/own", own)


async def _priority(sharing: Sharing) -> None:
    """A job comes before another one that holds all its project may have."""
    for name, pods, priority in (("low", 6, 10), ("high", 1, 90)):
        job = gpujob(name, "shop", gpu=0.5, parallelism=pods, priority=priority)
        sharing.server.put(f"{ROOT}/namespaces/shop/gpujobs/{name}", job)
        await sharing.stage.passes(10 if name == "low" else 0)


async def _time_to_live(sharing: Sharing) -> None:
    """A job ends, and is deleted twenty seconds later."""
    job = gpujob("short", "shop", gpu=1, ttlSecondsAfterFinished=20)
    sharing.server.put(f"{ROOT}/namespaces/shop/gpujobs/short", job)
    await sharing.stage.passes(10)
    (pod,) = sharing.judge.pods("shop")
    controllers.finish(sharing.server, pod)
    await sharing.stage.passes(2)


SCENES = {scene.__doc__: scene for scene in (_guarantee, _priority, _time_to_live)}


def what_went(
    scene: Callable[[Sharing], Awaitable[None]], step: float, counted: type[Clock] = Clock
) -> list[tuple[float, str]]:
    """What was evicted or deleted when a clock was set in a scene, and after how many seconds."""
    went: list[tuple[float, str]] = []

    async def play() -> None:
        sharing = Sharing(0)
        sharing.calm, sharing.stage.clock = True, counted
        await sharing.stage.lead(random.Random(0))
        await scene(sharing)
        sharing.stage.wall_ahead += step
        start, remove = clock(), sharing.server.remove

        def gone(path: str) -> None:
            went.append((round(clock() - start, 1), path))
            remove(path)

        sharing.server.remove = gone  # type: ignore[method-assign]
        await sharing.stage.passes(30)
        await sharing.stage.end()

    random.seed(0)
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play())
    return went


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_an_hour_either_way_changes_nothing(
    scene: Callable[[Sharing], Awaitable[None]],
) -> None:
    calm = what_went(scene, 0.0)
    assert calm
    for step in (3661.0, -3661.0):
        assert what_went(scene, step) == calm, step
    assert any(what_went(scene, step, Stepping) != calm for step in (3661.0, -3661.0))


def test_such_a_history_tells_a_clock_that_steps() -> None:
    counted = played(1000, steps=True, api=False, counted=Stepping)
    assert counted != played(1000, steps=False, api=False)
