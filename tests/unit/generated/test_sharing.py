"""Whatever shares the GPUs, GPUJobs or Deployments: quotas and limits hold, and nothing is lost.

``HISTORIES`` says how many: one of these for forty of the hostile ones.
"""

import asyncio
from collections import Counter
from unittest.mock import patch

import pytest
from tests.unit.generated.sharing import Sharing
from tests.unit.generated.test_histories import HISTORIES, SEED
from tests.unit.runtime.virtual_loop import VirtualLoop

from gpu_scheduler.runtime import status_writer

PARTS = 2
EACH = max(1, HISTORIES // 40 // PARTS)


def played(seed: int) -> Counter[str]:
    """One history; how its evictions went."""
    slower = patch.object(status_writer, "_TICK_SECONDS", 0.25)
    with slower, asyncio.Runner(loop_factory=VirtualLoop) as runner:
        sharing = Sharing(seed)
        runner.run(sharing.play())
    return sharing.judge.counts


@pytest.mark.parametrize("part", range(PARTS))
def test_quotas_hold_over_a_mix_of_jobs_and_deployments(part: int) -> None:
    seen: Counter[str] = Counter()
    first = SEED * 1000 + part * EACH
    for seed in range(first, first + EACH):
        try:
            seen += played(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert seen["evicted"], "nobody had to go"
