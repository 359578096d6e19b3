"""The figures of ``/metrics``: as old as their asker, and made for askers alone."""

import pytest
from msgspec.structs import replace
from tests.unit.runtime.usage.stage import NODE, UsageStage
from tests.unit.state.builders import half, make_node, make_pod

from gpu_scheduler.runtime.usage.cluster_use import ClusterUses
from gpu_scheduler.usage.figures import ContainerFigures, GpuState


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
    stage.state.pod_changed(make_pod(node="b", devices=half(), phase="Running"))
    found = (await uses.look()).gpus
    assert (found[GpuState.FREE_IN_PIECES], found[GpuState.FREE]) == (0, 1.5)
    pending = await stage.common.pending()
    pending.least_milli = 600
    stage.seconds += 1.0
    found = (await uses.look()).gpus
    assert (found[GpuState.FREE_IN_PIECES], found[GpuState.FREE]) == (0.5, 1)


async def test_containers_of_two_jobs_are_told_apart_only_where_a_pod_has_several() -> None:
    stage = UsageStage()
    stage.job()
    pods = [stage.runs(), stage.runs("job-1")]
    for pod in pods:
        stage.works(pod, 10, busy=0.2)
    stage.answers()
    (work,) = (await figures(stage).look()).work
    assert (work.gpus, list(work.containers)) == (1, [])
    main = stage.shares[pods[0].uid]
    tuner = replace(main, container="tuner", share=0.25, busy=0.8, cap_mib=4000, memory_mib=None)
    stage.shares["the tuner of job-0"] = tuner
    stage.answers()
    (work,) = (await figures(stage).look()).work
    assert list(work.containers) == [
        ContainerFigures(
            name="main",
            gpus=1.0,
            busy=0.2,
            memory_mib=2000.0,
            memory_limit_mib=2 * main.cap_mib,
        ),
        ContainerFigures(name="tuner", gpus=0.25, busy=0.8, memory_limit_mib=4000),
    ]
