"""Charts are kept where the next leader finds them."""

import base64
from typing import Any

import pytest
from tests.unit.runtime.fake_client import FakeClient
from tests.unit.runtime.usage.stage import UsageStage

from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.usage.charting.chart import CLUSTER, Charts
from gpu_scheduler.runtime.usage.charting.chart_keeper import ChartKeeper
from gpu_scheduler.runtime.usage.cluster_use import ClusterUses


class Kept:
    """The object as an API server has it."""

    def __init__(self) -> None:
        self.status: dict[str, Any] | None = None
        self.refuses = False

    def answer(self, sent: Any) -> Any:
        if self.refuses:
            raise errors.ServerError(503, "ServiceUnavailable", "away")
        if sent.method == "POST":
            self.status = {}
        if self.status is None:
            raise errors.NotFound(404, "NotFound", "gpuusages cluster")
        if sent.method == "PATCH":
            self.status |= sent.body["status"]
        return {"metadata": {"uid": "u"}, "status": self.status}


def keeper(kept: Kept) -> tuple[UsageStage, ChartKeeper]:
    stage = UsageStage(FakeClient(kept.answer))
    return stage, ChartKeeper(stage.common, ClusterUses(stage.common, stage.seen, stage.minute))


async def test_another_leader_goes_on() -> None:
    kept = Kept()
    stage, first = keeper(kept)
    await first.restore()
    for _ in range(13):
        stage.seconds += 10
        await first.look()
    other, second = keeper(kept)
    other.seconds = stage.seconds + 30
    await second.restore()
    await second.look()
    before, after = first.charts.by_name[CLUSTER], second.charts.by_name[CLUSTER]
    until = stage.common.clock.now()
    assert after.fine.window(until, 20)[1][1].tolist()[:12] == pytest.approx(
        before.fine.window(until, 20)[1][1].tolist()[:12], nan_ok=True
    )
    assert after.coarse.last == before.coarse.last


async def test_it_is_written_once_a_minute() -> None:
    kept = Kept()
    stage, keeping = keeper(kept)
    await keeping.restore()
    for _ in range(18):
        stage.seconds += 10
        await keeping.look()
    assert len(stage.client.of("PATCH", "/gpuusages/cluster/status")) == 3
    assert kept.status is not None
    assert CLUSTER in Charts.loads(base64.b64decode(kept.status["charts"])).by_name


async def test_what_cannot_be_written_is_tried_again_and_one_that_was_deleted_is_made_again() -> (
    None
):
    kept = Kept()
    stage, keeping = keeper(kept)
    await keeping.restore()
    kept.refuses = True
    stage.seconds += 60
    await keeping.look()
    kept.refuses = False
    for _ in range(2):
        stage.seconds += 700
        await keeping.look()
    assert kept.status
    kept.status = None
    for _ in range(3):
        stage.seconds += 700
        await keeping.look()
    assert kept.status is not None and "charts" in kept.status


@pytest.mark.parametrize("charts", ["", "%%%", base64.b64encode(b"no").decode(), 7])
async def test_what_somebody_wrote_there_is_no_chart(charts: Any) -> None:
    kept = Kept()
    kept.status = {"charts": charts}
    _, keeping = keeper(kept)
    await keeping.restore()
    assert not keeping.charts.by_name
