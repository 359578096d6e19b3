"""The boxes of the page of GPUs say what the strip says: one definition, seen twice."""

from random import Random

import pytest
from tests.unit.runtime.usage.random_cluster import random_cluster

from gpu_scheduler.dashboard.content import overview
from gpu_scheduler.dashboard.content.hidden import parts_of
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.reading.nodes import NodeRows
from gpu_scheduler.dashboard.visible import ALL
from gpu_scheduler.runtime.usage.held import HeldGpus
from gpu_scheduler.runtime.usage.where_gpus_are import GpuStates
from gpu_scheduler.usage.figures import HELD

IDLE_SECONDS = 3600


@pytest.mark.long
async def test_a_thousand_clusters_add_up_and_boxes_equal_the_strip() -> None:
    random = Random(2)
    for _ in range(1000):
        cluster = random_cluster(random, IDLE_SECONDS)
        held = (await HeldGpus(cluster.state, cluster.seen).read(0.0)).values()
        parts = (await GpuStates(IDLE_SECONDS).of(held, piece_milli=500)).by_state
        nodes = await NodeRows(cluster.state, IDLE_SECONDS, ahead=1e9).read(held)
        page = overview.page(
            Picture(at=1e9, idle_seconds=IDLE_SECONDS, parts=parts, nodes=nodes), ALL, {}
        )
        assert page.gpus == pytest.approx(cluster.gpus)
        assert sum(part.gpus for part in page.parts) == pytest.approx(cluster.gpus)
        assert sum(len(node.devices) for node in nodes) == cluster.gpus
        boxes = [share for node in nodes for device in node.devices for share in device.shares]
        if all(sum(s.gpus for s in d.shares) <= 1 for node in nodes for d in node.devices):
            for state, gpus in parts_of(boxes).items():
                if state in HELD:
                    assert gpus == pytest.approx(parts[state], abs=1e-6)
