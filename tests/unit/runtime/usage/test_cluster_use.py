"""The figures of ``/metrics``: as old as their asker, and made for askers alone."""

import pytest
from tests.unit.runtime.usage.stage import NODE, UsageStage
from tests.unit.state.builders import half, make_node, make_pod

from gpu_scheduler.runtime.usage.cluster_use import ClusterUses
from gpu_scheduler.usage.figures import GpuState


def figures(stage: UsageStage) -> ClusterUses:
    return ClusterUses(stage.common, stage.seen, stage.minute)


async def test_who_asks_sees_what_an_agent_said_a_moment_ago() -> None:
    stage = UsageStage()
    uses = figures(stage)
    stage.job()
    pod = stage.runs()
    for busy in (0.2, 0.9):
        stage.works(pod, 10, busy=busy)
        stage.answers(10.0)
        (work,) = (await uses.look()).work
        assert work.busy == busy


async def test_when_an_agent_was_heard_is_told_by_our_own_clock_until_it_goes() -> None:
    stage = UsageStage()
    uses = figures(stage)
    stage.answers()
    at = stage.common.clock.now()
    stage.seconds += 300
    assert (await uses.look()).heard == {NODE: pytest.approx(at)}
    stage.seen.forget(NODE)
    stage.seconds += 1
    assert (await uses.look()).heard == {}


async def test_a_gpujob_says_what_it_asks_for_beside_what_it_holds() -> None:
    stage = UsageStage()
    stage.job()  # two pods at once, half a GPU each
    stage.runs()
    (work,) = (await figures(stage).look()).work
    assert (work.gpus, work.requested_gpus) == (0.5, 1)


async def test_a_free_part_below_the_smallest_share_that_waits_is_a_piece() -> None:
    stage = UsageStage()
    uses = figures(stage)
    stage.state.nodes.changed(make_node("b", 2))
    stage.state.pod_changed(make_pod(node="b", grants=half(), phase="Running"))
    found = (await uses.look()).gpus
    assert (found[GpuState.FREE_IN_PIECES], found[GpuState.FREE]) == (0, 1.5)
    pending = await stage.common.pending()
    pending.least_milli = 600
    stage.seconds += 1.0
    found = (await uses.look()).gpus
    assert (found[GpuState.FREE_IN_PIECES], found[GpuState.FREE]) == (0.5, 1)
