"""The whole agent against an API server of HTTP and a pretend driver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from tests.unit.agent.fake_driver import FakeDriver, gpu
from tests.unit.agent.until import until
from tests.unit.kube.fake_server import FakeServer, Obj

from gpu_scheduler.agent.driver import Xid
from gpu_scheduler.agent.process import Node
from gpu_scheduler.agent.selftest import Layer, verdict
from gpu_scheduler.agent.settings import Settings
from gpu_scheduler.kube.client import Client

GPUNODE = "/apis/gpu-scheduler.io/v1alpha1/gpunodes/n1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases/gpu-node-n1"


class Stage:
    def __init__(self, server: FakeServer, driver: FakeDriver, node: Node) -> None:
        self.server, self.driver, self.node = server, driver, node
        self.stop = asyncio.Event()

    def sent(self, path: str) -> list[Any]:
        return [s.body for s in self.server.seen if (s.method, s.path) == ("PATCH", path)]

    def statuses(self) -> list[Obj]:
        return [body["status"] for body in self.sent(f"{GPUNODE}/status")]


@asynccontextmanager
async def running(folder: Path, *, hold: bool = False, **changes: Any) -> AsyncIterator[Stage]:
    settings = Settings(
        **{
            "node": "n1",
            "namespace": "gpu-system",
            "sample_seconds": 0.2,
            "renew_seconds": 0.2,
            "admin_port": 0,
            "verdict_file": str(folder / "verdict.json"),
            **changes,
        }
    )
    async with FakeServer() as server:
        if hold:
            server.hold_lists.clear()
        server.put("/api/v1/nodes/n1", {})
        for path in (GPUNODE, f"{GPUNODE}/status", LEASE):
            server.put(path, {})
        async with Client(server.connection) as client:
            driver = FakeDriver()
            stage = Stage(server, driver, Node(settings, client, driver))
            task = asyncio.create_task(stage.node.run(stage.stop))
            try:
                yield stage
            finally:
                stage.stop.set()
                assert await task == 0
                assert driver.closed == 1


async def test_it_reports_and_beats_and_watches_its_own_node_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as stage:
        await until(lambda: len(stage.sent(LEASE)) >= 3)
        assert len(stage.statuses()) == 1
        lists = {s.path: s.query for s in stage.server.lists_seen()}
        assert lists["/api/v1/pods"]["fieldSelector"] == "spec.nodeName=n1"


async def test_the_verdict_of_the_init_container_is_the_nodes(tmp_path: Path) -> None:
    passed = verdict(Layer("interposer", "passed", "cap 256 MiB"))
    (tmp_path / "verdict.json").write_text(passed.to_json())
    async with running(tmp_path) as stage:
        await until(lambda: bool(stage.statuses()))
        assert stage.statuses()[0]["isolation"] == "interposer"


async def test_kernel_limits_that_are_not_there_are_said(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text(
        verdict(Layer("kernel", "untested", "-"), Layer("interposer", "passed", "ok")).to_json()
    )
    async with running(tmp_path, kernel_limits=True) as stage:
        await until(lambda: bool(stage.statuses()))
        assert "driver 570.86.15 is older than r615" in stage.statuses()[0]["selfTest"]
        assert stage.statuses()[0]["isolation"] == "interposer"


async def test_without_the_api_server_it_goes_on_looking_and_catches_up(tmp_path: Path) -> None:
    async with running(tmp_path) as stage:
        await until(lambda: bool(stage.statuses()))
        stage.server.objects.pop(f"{GPUNODE}/status")  # 404 for every write
        stage.driver.events = [Xid(gpu(1), 79)]
        before = stage.node.metrics.counts.samples
        await until(lambda: stage.node.metrics.counts.samples > before + 3)
        assert stage.node.publisher.behind_seconds() > 0
        stage.server.put(f"{GPUNODE}/status", {})
        await until(lambda: stage.node.publisher.behind_seconds() == 0)
        assert [d["healthy"] for d in stage.statuses()[-1]["devices"]] == [True, False]


async def test_health_and_metrics_are_served(tmp_path: Path) -> None:
    port = await _free_port()
    async with running(tmp_path, admin_port=port, admin_host="127.0.0.1") as stage:
        await until(lambda: bool(stage.statuses()))
        async with aiohttp.ClientSession() as session:
            answers = {}
            for path in ("healthz", "readyz", "metrics"):
                async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                    answers[path] = (answer.status, await answer.text())
        assert answers["healthz"] == answers["readyz"] == (200, "ok agent\n")
        assert f'uuid="{gpu(1)}"' in answers["metrics"][1]


async def test_it_is_not_ready_before_the_pods_are_known(tmp_path: Path) -> None:
    port = await _free_port()
    async with running(tmp_path, hold=True, admin_port=port, admin_host="127.0.0.1") as stage:
        await until(lambda: bool(stage.server.lists_seen()))
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/readyz") as answer,
        ):
            said = (answer.status, await answer.text())
        assert said == (503, "the pods of the node are not known yet\n")
        assert stage.statuses() == [], "nobody's process is a stranger before that"
        stage.server.hold_lists.set()
        await until(lambda: bool(stage.statuses()))


async def _free_port() -> int:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    server.close()
    await server.wait_closed()
    return port
