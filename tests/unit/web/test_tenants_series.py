"""Who is shown what names a tenant: a namespace or a project."""

from collections.abc import Iterable

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import Metric

from gpu_scheduler.usage.figures import ClusterUse, WorkUse
from gpu_scheduler.web.admin import app
from gpu_scheduler.web.usage_metrics import figures

TOKEN = "a-token-of-the-owner"
USE = ClusterUse(
    work=[WorkUse(namespace="team-b", name="train", project="vision", gpus=1.5, busy=0.4)]
)


class Use:
    """What the leader shows of its tenants' GPUs."""

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        return figures(USE)


async def text(header: str, token: str = TOKEN) -> str:
    registry = CollectorRegistry()
    Gauge("gpus", "All.", registry=registry).set(3)
    Gauge("jobs", "By namespace.", ["namespace"], registry=registry).labels("team-a").set(1)
    Gauge("quota", "By project.", ["project"], registry=registry).labels("team-c").set(2)
    registry.register(Use())
    application = app(registry, ready=lambda: "", state=lambda: "leader", token=lambda: token)
    async with TestClient(TestServer(application)) as client:
        answer = await client.get("/metrics", headers={"Authorization": header} if header else {})
        assert answer.status == 200
        return await answer.text()


async def test_who_has_the_token_sees_all() -> None:
    found = await text(f"Bearer {TOKEN}")
    assert 'jobs{namespace="team-a"} 1.0' in found
    assert 'quota{project="team-c"} 2.0' in found
    assert 'gpusched_gpujob_gpu_utilization_ratio{gpujob="train",namespace="team-b"' in found


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x", TOKEN, f"Basic {TOKEN}", "Bearer é"])
async def test_nobody_else_sees_a_tenant(header: str) -> None:
    found = await text(header)
    assert "gpus 3.0" in found
    assert "gpusched_silent_agents 0.0" in found
    assert "team-" not in found
    assert "jobs" not in found and "quota" not in found


async def test_where_there_is_no_token_nobody_sees_a_tenant() -> None:
    for header in ("", "Bearer ", f"Bearer {TOKEN}"):
        assert "team-" not in await text(header, token="")
