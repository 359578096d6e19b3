"""Whatever shares the GPUs, GPUJobs or Deployments: quotas and limits hold, and nothing is lost.

``HISTORIES`` says how many: one of these for forty of the hostile ones.
"""

import asyncio
from collections import Counter
from random import Random
from unittest.mock import patch

import pytest
from tests.unit.generated.ours import gpujob
from tests.unit.generated.shares import template
from tests.unit.generated.sharing import Sharing
from tests.unit.generated.stage import ROOT
from tests.unit.generated.test_histories import HISTORIES, SEED
from tests.unit.runtime.virtual_loop import VirtualLoop, virtual

from gpu_scheduler.runtime.status import status_writer

PARTS = 2
EACH = max(1, HISTORIES // 40 // PARTS)


def played(seed: int) -> Counter[str]:
    """One history; how its evictions went."""
    slower = patch.object(status_writer, "_TICK_SECONDS", 0.25)
    with slower, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        sharing = Sharing(seed)
        runner.run(sharing.play())
    return sharing.judge.counts


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_quotas_hold_over_jobs_and_deployments_together(part: int) -> None:
    seen: Counter[str] = Counter()
    first = SEED * 1000 + part * EACH
    for seed in range(first, first + EACH):
        try:
            seen += played(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert seen["evicted"], "nobody had to go"


@pytest.mark.parametrize("change", ["the owner goes", "the borrower scales down"])
@virtual
async def test_no_budget_is_overruled_once_nobody_needs_what_was_borrowed(change: str) -> None:
    sharing = Sharing(0)
    stage, judge, sharing.calm = sharing.stage, sharing.judge, True
    made, own = template("1", controlled=True), f"{ROOT}/namespaces/shop/gpujobs/own"
    await stage.lead(Random(0))
    stage.scale("lab", "web", 4, made)
    await stage.passes(10)
    judge.refusing.add("lab")
    stage.server.put(own, gpujob("own", "shop", gpu=1))
    await stage.passes(10)
    assert judge.counts["refused"]
    if change == "the owner goes":
        stage.server.remove(own)
    else:
        stage.scale("lab", "web", 2, made)
    await stage.passes(1)
    there = {pod["metadata"]["uid"] for pod in judge.pods("lab")}
    await stage.passes(60)
    assert {pod["metadata"]["uid"] for pod in judge.pods("lab")} == there
    assert not judge.counts["overruled"]
    await stage.end()
