"""What an operator, an agent and NVIDIA's exporter expose, with made-up figures that grow.

Operator and agent are asked by their real collectors: what these do not expose is on no board.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import generate_latest
from tests.unit.agent import builders
from tests.unit.agent.fake_driver import gpu
from tests.unit.runtime.fake_client import FakeClient
from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.state.builders import gpujob_body, half, make_job, make_node, make_pod

from gpu_scheduler.agent.driver import THERMAL, Load, Vitals
from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.usage import Usage
from gpu_scheduler.core.steps import STEPS
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.informers.our_lists import PATHS
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.sweeps.runtime.sweeping import Sweeping
from gpu_scheduler.usage.figures import ClusterUse, GpuState, WorkUse
from gpu_scheduler.web.metrics import OperatorMetrics

NODE, MODEL = "a", "NVIDIA A100-PCIE-40GB"
TRAIN = WorkUse(
    namespace="team-a",
    name="train",
    project="team-a",
    gpus=0.75,
    requested_gpus=1.0,
    busy=0.1,
    memory_mib=1024.0,
    memory_limit_mib=30720.0,
    cpu_cores=1.5,
    ram_mib=2048.0,
    idle_seconds=4000,
    advice="GPU_IDLE",
)
_SWEEP = {"trials": 9, "counts": {"running": 2}, "best": {"trial": 3, "value": 0.25}}
_ACCOUNT = (TRAIN.project, TRAIN.type)

DCGM = f"""\
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{gpu="0",UUID="{gpu(0)}",device="nvidia0",modelName="{MODEL}"}} 1410
"""


class Operated:
    """An operator that leads one GPU, on which a job waits for what another one holds."""

    def __init__(self) -> None:
        client: Any = FakeClient()
        client.requests = {("GET", "200"): 3}
        self.metrics = OperatorMetrics(client)
        settings = OperatorSettings(identity="me")
        made = Operator(client, settings, self.metrics, "me", Sweeping)
        self.metrics.operator = self.operator = made
        made.informers.custom_resources.project(project_body(quota=4, limit=8))
        made.informers.custom_resources.gpujob(gpujob_body(status={"phase": "Running"}))
        made.state.nodes.changed(make_node(NODE, 1))
        made.state.nodes.reported(NODE, (NodeDevice(gpu(0), 0, MODEL, 40960),))
        made.state.job_changed(make_job(parallelism=2))
        made.state.pod_changed(make_pod(node=NODE, devices=half(gpu(0), 750), phase="Running"))
        made.state.pod_changed(make_pod("job-1", index=1))
        for path in PATHS.values():
            client.watches.followed(path)
        for record in made.state.gpujobs.values():
            record.status = {**record.status, "sweep": _SWEEP}
        self._scrapes = 0

    def text(self) -> bytes:
        """What is scraped; each time something has happened."""
        self._scrapes += 1
        made, metrics = self.operator, self.metrics
        made.planning.cycle()
        made.binding.binder.results["placed"] += 1
        made.eviction.preemption.counts["reclaim"] += 1
        made.eviction.evictor.counts["over_cap"] += 1
        metrics.cycle_seconds(0.003, [0.0005] * len(STEPS))
        metrics.bind_seconds(0.004)
        metrics.stall_seconds(0.001)
        metrics.queue_wait_seconds(60.0, TRAIN.type)
        metrics.job_run_seconds(3600.0, TRAIN.type)
        metrics.gc_pauses("start", {})
        metrics.gc_pauses("stop", {})
        held = 0.75 * self._scrapes
        use = ClusterUse(
            gpus={
                **dict.fromkeys(GpuState, 0.0),
                GpuState.IDLE: 0.75,
                GpuState.FREE_IN_PIECES: 0.25,
            },
            work=[TRAIN],
            gpu_seconds={_ACCOUNT: held},
            idle_gpu_seconds={_ACCOUNT: held / 2},
        )

        async def used() -> ClusterUse:
            return use

        metrics.use = used
        asyncio.run(metrics.look())
        return generate_latest(metrics.registry)


def of_agent() -> bytes:
    """What an agent exposes whose driver tells everything."""
    metrics = AgentMetrics(NODE)
    look = builders.sample(builders.seen(1, 1000))
    load = Load(0.1, 250.0, 60.0, tensor_ratio=0.01, throttled=frozenset({THERMAL}))
    first = replace(
        look.devices[0],
        load=load,
        xids={79: 1},
        vitals=Vitals(uncorrected_ecc=2, remapped_after_corrected=1),
    )
    metrics.sample = replace(look, devices=(first,))
    metrics.usage = Usage((builders.use(builders.seen(1, 1000)),), {})
    metrics.last_active = {gpu(0): 1.7e9}
    return generate_latest(metrics.registry)


@contextmanager
def served() -> Iterator[int]:
    """Them on a port of this machine: /operator, /agent and /dcgm."""
    operated = Operated()
    texts: dict[str, Callable[[], bytes]] = {
        "/operator": operated.text,
        "/agent": of_agent,
        "/dcgm": DCGM.encode,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = texts[self.path]()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    counts["planning"] += 1  # of the process: what /metrics tells of unexpected errors
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        counts["planning"] -= 1
