"""The figures of ``/metrics``: as old as their asker, and made for askers alone."""

from tests.unit.runtime.usage.stage import UsageStage
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
