"""The whole agent against an API server of HTTP and a pretend driver."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.unit.agent.builders import orders
from tests.unit.agent.fake_driver import FakeDriver, gpu
from tests.unit.agent.until import until
from tests.unit.kube.fake_server import FakeServer, Obj, refuse
from tests.unit.left_open import nothing_left_open

from gpu_scheduler.agent.driver import DriverError, Xid
from gpu_scheduler.agent.process import AgentProcess
from gpu_scheduler.agent.selftest import Layer, verdict
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.api.orders import GPUNodeAt, Orders, dumps
from gpu_scheduler.kube.client import Client

GPUNODE = "/apis/gpu-scheduler.io/v1alpha1/gpunodes/n1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases/gpu-node-n1"


NOTHING = orders()


def write(folder: Path, told: Orders) -> None:
    (folder / "new").write_text(dumps(told))
    (folder / "new").rename(folder / "orders")


class Stage:
    def __init__(
        self, server: FakeServer, driver: FakeDriver, node: AgentProcess, folder: Path
    ) -> None:
        self.server, self.driver, self.node, self.folder = server, driver, node, folder
        self.stop = asyncio.Event()

    def sent(self, path: str) -> list[Any]:
        return [s.body for s in self.server.seen if (s.method, s.path) == ("PUT", path)]

    def statuses(self) -> list[Obj]:
        return [body["status"] for body in self.sent(f"{GPUNODE}/status")]

    def tell(self, told: Orders) -> None:
        """What the operator's annotation says, as the kubelet writes it."""
        write(self.folder, told)


@asynccontextmanager
async def running(
    folder: Path, *, told: Orders | None = NOTHING, **changes: Any
) -> AsyncIterator[Stage]:
    settings = AgentSettings(
        **{
            "node": "n1",
            "namespace": "gpu-system",
            "sample_seconds": 0.2,
            "renew_seconds": 0.2,
            "admin_port": 0,
            "verdict_file": str(folder / "verdict.json"),
            "orders_file": str(folder / "orders"),
            **changes,
        }
    )
    if told is not None:
        write(folder, told)
    async with FakeServer() as server:
        async with Client(server.connection) as client:
            driver = FakeDriver()
            stage = Stage(server, driver, AgentProcess(settings, client, driver), folder)
            task = asyncio.create_task(stage.node.run(stage.stop))
            try:
                yield stage
            finally:
                stage.stop.set()
                assert await task == 0
                assert driver.closed == 1


async def test_it_reports_and_beats_and_reads_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as stage:
        await until(lambda: len(stage.sent(LEASE)) >= 3)
        assert len(stage.statuses()) == 1
        assert {s.method for s in stage.server.seen} == {"POST", "PUT"}


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


@pytest.mark.long(always=True)
async def test_without_the_api_server_it_goes_on_looking_and_catches_up(tmp_path: Path) -> None:
    async with running(tmp_path) as stage:
        await until(lambda: bool(stage.statuses()))
        stage.server.answers.extend([refuse(403, "Forbidden")] * 1000)
        stage.driver.events = [Xid(gpu(1), 79)]
        before = stage.node.metrics.counts.samples
        await until(lambda: stage.node.metrics.counts.samples > before + 3)
        assert stage.node.publisher.behind_seconds() > 0
        stage.server.answers.clear()
        await until(lambda: stage.node.publisher.behind_seconds() == 0)
        assert [d["healthy"] for d in stage.statuses()[-1]["devices"]] == [True, False]


async def test_health_and_metrics_are_served(tmp_path: Path, port: int) -> None:
    async with running(tmp_path, admin_port=port, admin_host="127.0.0.1") as stage:
        await until(lambda: bool(stage.statuses()))
        async with aiohttp.ClientSession() as session:
            answers = {}
            for path in ("healthz", "readyz", "metrics"):
                async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                    answers[path] = (answer.status, await answer.text())
        assert answers["healthz"] == answers["readyz"] == (200, "ok agent\n")
        assert f'uuid="{gpu(1)}"' in answers["metrics"][1]


async def test_it_is_not_ready_before_the_operators_first_word(tmp_path: Path, port: int) -> None:
    async with running(tmp_path, told=None, admin_port=port, admin_host="127.0.0.1") as stage:
        await until(lambda: stage.node.metrics.counts.samples > 1)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/readyz") as answer,
        ):
            said = (answer.status, await answer.text())
        assert said == (503, "the operator has not said yet which pods of the node are whose\n")
        assert stage.server.seen == [], "nobody's process is a stranger before that"
        stage.tell(NOTHING)
        await until(lambda: bool(stage.statuses()))


async def test_a_gpunode_that_was_deleted_is_written_again_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as stage:
        await until(lambda: bool(stage.statuses()))
        await until(lambda: stage.node.publisher.behind_seconds() == 0)
        stage.server.remove(GPUNODE)
        stage.tell(orders(lease_version="1"))
        await until(lambda: len(stage.statuses()) == 2)
        await until(lambda: stage.node.publisher.behind_seconds() == 0)
        assert stage.server.objects[GPUNODE]["status"] == stage.statuses()[0]


async def test_a_fresh_agent_goes_on_with_what_is_there(tmp_path: Path) -> None:
    async with running(tmp_path, told=None) as stage:
        known = stage.server.put(GPUNODE, {"status": {"gpus": 2, "devices": []}})["metadata"]
        lease = stage.server.put(LEASE, {"spec": {}})["metadata"]["resourceVersion"]
        stage.driver.broken = DriverError("Driver Not Loaded")
        at = GPUNodeAt(known["uid"], known["resourceVersion"])
        stage.tell(orders(gpu_node=at, lease_version=lease))
        await until(lambda: len(stage.sent(LEASE)) >= 2)
        assert {s.method for s in stage.server.seen} == {"PUT"}
        assert stage.statuses()[0]["gpus"] == 2, "what is known while the driver is away"


@pytest.mark.parametrize("turns", range(6))
async def test_who_connects_as_the_pretended_server_ends_leaves_nothing_open(turns: int) -> None:
    with nothing_left_open():
        async with FakeServer() as server:
            url = urlsplit(server.url)
            with socket.create_connection((url.hostname, url.port)):
                pass
            for _ in range(turns):
                await asyncio.sleep(0)
