"""`gpu-scheduler agent` as its image runs it: pretended NVML, and an API server of HTTP."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.native.fake_gpu import FakeGPU
from tests.unit.agent.builders import orders
from tests.unit.agent.until import until
from tests.unit.kube.fake_server import FakeServer

from gpu_scheduler.api.orders import dumps

GPUNODE = "/apis/gpu-scheduler.io/v1alpha1/gpunodes/n1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-system/leases/gpu-node-n1"
AGENT = (sys.executable, "-m", "gpu_scheduler.main", "agent")


class Stage:
    def __init__(self, server: FakeServer, process: asyncio.subprocess.Process) -> None:
        self.server, self.process = server, process

    def statuses(self) -> list[dict[str, Any]]:
        path = f"{GPUNODE}/status"
        return [s.body["status"] for s in self.server.seen if (s.method, s.path) == ("PUT", path)]

    def beats(self) -> int:
        return sum(s.method == "PUT" and s.path == LEASE for s in self.server.seen)


@asynccontextmanager
async def running(gpu: FakeGPU, folder: Path, **settings: str) -> AsyncIterator[Stage]:
    async with FakeServer() as server:
        (folder / "orders").write_text(dumps(orders()))
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
                    "clusters": [{"name": "x", "cluster": {"server": server.url}}],
                    "users": [{"name": "x", "user": {"token": "t"}}],
                }
            )
        )
        environment = {
            **gpu.environment,
            "KUBECONFIG": str(kubeconfig),
            "GPUSCHED_AGENT_NODE": "n1",
            "GPUSCHED_AGENT_NAMESPACE": "gpu-system",
            "GPUSCHED_AGENT_ADMIN_PORT": "0",
            "GPUSCHED_AGENT_ORDERS_FILE": str(folder / "orders"),
            **settings,
        }
        process = await asyncio.create_subprocess_exec(
            *AGENT, env=environment, stderr=asyncio.subprocess.PIPE
        )
        try:
            yield Stage(server, process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def test_an_xid_and_a_lost_device_are_reported_within_ten_seconds(
    fake_gpu: Callable[..., FakeGPU], tmp_path: Path
) -> None:
    gpu = fake_gpu(devices=2)
    async with running(gpu, tmp_path) as stage:
        await until(lambda: bool(stage.statuses()), seconds=120)
        first = stage.statuses()[0]
        assert [d["usableMiB"] for d in first["devices"]] == [40448, 40448]
        assert [d["healthy"] for d in first["devices"]] == [True, True]
        assert first["driverVersion"] == "570.86.15"
        await until(lambda: stage.beats() > 0, seconds=60)
        gpu.xid(gpu.uuids[0], 79)
        gpu.set(gpu.uuids[1], "lost", 1)
        await until(
            lambda: [d["healthy"] for d in stage.statuses()[-1]["devices"]] == [False, False],
            seconds=120,
        )
        messages = [d["message"] for d in stage.statuses()[-1]["devices"]]
        assert messages == ["XID 79: the GPU has fallen off the bus", "NVML: GPU is lost"]


async def test_it_ends_cleanly_when_told_to(gpu: FakeGPU, tmp_path: Path) -> None:
    async with running(gpu, tmp_path) as stage:
        await until(lambda: bool(stage.statuses()), seconds=120)
        stage.process.send_signal(signal.SIGTERM)
        _, said = await asyncio.wait_for(stage.process.communicate(), 60)
        assert stage.process.returncode == 0
        assert b"Traceback" not in said, said.decode()
        assert said.decode().rstrip().endswith("ended")


async def test_a_node_whose_driver_is_not_loaded_has_no_devices(
    gpu: FakeGPU, tmp_path: Path
) -> None:
    (gpu.folder / "config").unlink()
    async with running(gpu, tmp_path) as stage:
        await until(lambda: bool(stage.statuses()), seconds=120)
        assert stage.statuses()[0]["devices"] == []
        assert stage.process.returncode is None
