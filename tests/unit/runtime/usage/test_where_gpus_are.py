"""Each GPU adds up to exactly one."""

from random import Random

import pytest
from tests.unit.runtime.usage.random_cluster import random_cluster
from tests.unit.state.builders import half, make_node, make_pod

from gpu_scheduler.runtime.usage.held import HeldGpus
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.runtime.usage.where_gpus_are import GpuStates
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.usage.answer import AgentUsage, ShareUse
from gpu_scheduler.usage.figures import GpuState

IDLE_SECONDS = 3600


async def states(state: ClusterState, seen: SeenUse) -> dict[GpuState, float]:
    held = (await HeldGpus(state, seen).read(0.0)).values()
    return (await GpuStates(IDLE_SECONDS).of(held, piece_milli=500)).by_state


async def test_a_busy_a_half_used_an_idle_and_an_unknown_share() -> None:
    state = ClusterState("gpu-system")
    seen = SeenUse(state.pods.known)
    state.nodes.changed(make_node("a", gpus=4))
    shares = []
    for number, (busy, idle) in enumerate(((0.9, 0), (0.2, 0), (0.0, IDLE_SECONDS), (None, None))):
        pod = make_pod(f"p-{number}", node="a", devices=half(str(number), 300), phase="Running")
        record = state.pod_changed(pod)
        assert record is not None
        shares.append(
            ShareUse(
                device=str(number), pod_uid=record.uid, container="main", busy=busy,
                idle_seconds=idle, share=0.3,
            )
        )  # fmt: skip
    seen.take("a", AgentUsage(look=1, shares=tuple(shares)), 0.0)
    assert await states(state, seen) == {
        GpuState.BUSY: pytest.approx(0.5),  # at most the share of 0.3, and 0.2
        GpuState.PART_UNUSED: pytest.approx(0.1),
        GpuState.IDLE: pytest.approx(0.3),
        GpuState.UNKNOWN: pytest.approx(0.3),
        GpuState.NEIGHBOURS: 0,
        GpuState.FREE_IN_PIECES: 0,
        GpuState.FREE: pytest.approx(2.8),
        GpuState.CLOSED: 0,
    }


async def test_random_clusters_add_up() -> None:
    random = Random(1)
    for _ in range(200):
        cluster = random_cluster(random, IDLE_SECONDS)
        found = await states(cluster.state, cluster.seen)
        assert sum(found.values()) == pytest.approx(cluster.gpus)
        assert all(each >= 0 for each in found.values())
