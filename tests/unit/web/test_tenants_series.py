"""Who is shown what names a tenant's namespace."""

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, Gauge

from gpu_scheduler.web.admin import app

TOKEN = "a-token-of-the-owner"


async def text(header: str, token: str = TOKEN) -> str:
    registry = CollectorRegistry()
    Gauge("gpus", "All.", registry=registry).set(3)
    Gauge("jobs", "By namespace.", ["namespace"], registry=registry).labels("team-a").set(1)
    application = app(registry, ready=lambda: "", state=lambda: "leader", token=lambda: token)
    async with TestClient(TestServer(application)) as client:
        answer = await client.get("/metrics", headers={"Authorization": header} if header else {})
        assert answer.status == 200
        return await answer.text()


async def test_who_has_the_token_sees_all() -> None:
    assert 'jobs{namespace="team-a"} 1.0' in await text(f"Bearer {TOKEN}")


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x", TOKEN, f"Basic {TOKEN}", "Bearer é"])
async def test_nobody_else_sees_a_tenant(header: str) -> None:
    found = await text(header)
    assert "gpus 3.0" in found
    assert "team-a" not in found
    assert "jobs" not in found


async def test_where_there_is_no_token_nobody_sees_a_tenant() -> None:
    for header in ("", "Bearer ", f"Bearer {TOKEN}"):
        assert "team-a" not in await text(header, token="")
