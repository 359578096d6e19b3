"""An operator that has ended leaves nothing behind, also where many lead in one process."""

import asyncio
import gc
from random import Random

import pytest
from tests.unit.generated.histories import History, Step
from tests.unit.generated.stage import Stage
from tests.unit.generated.test_histories import played
from tests.unit.runtime.virtual_loop import virtual


def tasks() -> set[int]:
    """The tasks that are still in memory, by identity."""
    gc.collect()
    return {id(each) for each in gc.get_objects() if isinstance(each, asyncio.Task)}


@virtual
async def test_an_operator_that_has_ended_has_no_task() -> None:
    stage = Stage()
    await stage.lead(Random(0))
    assert len(asyncio.all_tasks()) > 1
    await stage.end()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.long(always=True)
def test_a_finished_history_leaves_no_task_in_memory() -> None:
    """The collector may look at everything again that a leader has spared it."""
    gc.unfreeze()
    before = tasks()
    steps = Step("submit", number=0), Step("restart", number=1), Step("time", number=5)
    for _ in range(2):  # what the first one leaves, the second one would have frozen
        played(History(((0.5, 1),), steps), hostile=True)
    assert gc.get_freeze_count() == 0
    assert tasks() <= before
