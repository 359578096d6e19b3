"""The cluster for signals: projects, agents' pods and addresses, and an operator of a phase.

Settings are those that the chart gives its Deployment, with and without ``agent.history.enabled``,
but for a Lease that outlasts a busy machine; addresses and ports are loopback ones. As root, what
runs has bounds on its memory: the operator that of the chart.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import yaml
from tests.api.free_port import free_port
from tests.attack.memory_group import MemoryGroup, memory_group
from tests.attack.stand import chart_limit_mib
from tests.perf.install import RELEASE, pids, say
from tests.perf.queue_load import apply
from tests.perf.schedulers import OPERATOR, start_operator
from tests.perf.settings import ROOT
from tests.perf.signals.nodes import (
    agent_address,
    agent_name,
    agent_pod,
    gpu_node,
    gpu_node_status,
    has_address,
)
from tests.perf.signals.size import Size
from tests.perf.workload import CAP_IMAGE

from cluster import Running
from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core, of_group
from gpu_scheduler.kube.paths import pod as pod_path

TOKEN = "bench-signals"
PROGRAM = "tests.perf.signals.noted_operator"
_CHART = str(ROOT / "charts" / "gpu-scheduler")
_MIB = 1 << 20
_CONTROL_PLANE_MIB = 10 * 1024
_AGENTS_SECONDS = 120.0
_CALM_LEASE = {"GPUSCHED_LEASE_SECONDS": "90", "GPUSCHED_RENEW_DEADLINE_SECONDS": "75"}
_AT_ONCE = 16
_LOOK_SECONDS, _STANDS = 0.5, 4  # looks that must find an agent's address as it was written


@contextmanager
def bounds() -> Iterator["Bounds"]:
    """Enter before the cluster: they are removed when what is in them has ended."""
    with ExitStack() as stack:
        yield Bounds(stack)


class Bounds:
    """On the memory of what runs; none where nobody may set any."""

    def __init__(self, stack: ExitStack) -> None:
        """Make them."""
        self._control_plane: MemoryGroup | None = None
        self._operator: MemoryGroup | None = None
        if os.geteuid() != 0:
            say("not root: memory has no bounds")
            return
        self._control_plane = stack.enter_context(
            memory_group("control-plane", _CONTROL_PLANE_MIB * _MIB)
        )
        self._operator = stack.enter_context(memory_group("operator", chart_limit_mib() * _MIB))

    def control_plane(self, running: Running) -> None:
        """All that runs now, this program aside."""
        if self._control_plane is not None:
            for name, pid in pids(running).items():
                if name != "harness":
                    self._control_plane.add(pid)

    def operator(self, pid: int) -> None:
        """The operator that runs now."""
        if self._operator is not None:
            self._operator.add(pid)


def _values(signals: bool) -> tuple[str, ...]:
    enabled = str(signals).lower()
    return ("--set", f"isolation.image={CAP_IMAGE}", "--set", f"agent.history.enabled={enabled}")


def chart_environment(running: Running, signals: bool) -> dict[str, str]:
    """What the chart's Deployment gives the operator, as far as it stands there literally."""
    text = running.helm(
        *("template", RELEASE, _CHART, "--namespace", RELEASE),
        *("--show-only", "templates/deployment.yaml"),
        *_values(signals),
    ).stdout
    (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


class OperatorStand:
    """Starts and stops operators on one cluster."""

    def __init__(
        self,
        running: Running,
        size: Size,
        bounds: Bounds,
        agent_port: int,
        also: Mapping[str, str] | None = None,
    ) -> None:
        """``agent_port``: of all agents; ``also``: variables beside those of the chart."""
        self._running = running
        self._size = size
        self._bounds = bounds
        self._agent_port = agent_port
        self._also = dict(also or {})
        self.admin_port = 0
        self.notes = Path()

    @property
    def pid(self) -> int:
        """Of the one that runs."""
        return pids(self._running)[OPERATOR]

    async def start(self, name: str, signals: bool) -> None:
        """Start one and wait until it knows the cluster; ``name``: of its notes."""
        folder = self._running.folder
        token = folder / "scrape-token"
        token.write_text(TOKEN)
        self.admin_port = free_port()
        self.notes = folder / f"{name}.notes"
        environment = await asyncio.to_thread(chart_environment, self._running, signals)
        environment |= {
            **_CALM_LEASE,
            "BENCH_NOTES": str(self.notes),
            "GPUSCHED_ADMIN_HOST": "127.0.0.1",
            "GPUSCHED_ADMIN_PORT": str(self.admin_port),
            "GPUSCHED_DUMP_SOCKET": str(folder / "dump.sock"),
            "GPUSCHED_REPORT_HOST": "127.0.0.1",
            "GPUSCHED_REPORT_PORT": str(free_port()),
            "GPUSCHED_SCRAPE_TOKEN_FILE": str(token),
            **self._also,
        }
        if ("GPUSCHED_AGENT_PORT" in environment) != signals:
            raise RuntimeError(f"agent.history.enabled={signals}, and the chart says {environment}")
        if signals:
            environment["GPUSCHED_AGENT_PORT"] = str(self._agent_port)
            if self._size.usage_seconds:
                environment["GPUSCHED_USAGE_SECONDS"] = str(self._size.usage_seconds)
        await start_operator(self._running, environment, program=PROGRAM, seconds=300.0)
        self._bounds.operator(self.pid)

    async def stop(self) -> None:
        """As a kubelet stops one."""
        await asyncio.to_thread(self._running.stop_process, OPERATOR)


async def prepare(running: Running, client: Client, size: Size) -> None:
    """Roles for signals, namespaces with projects, and the agents' pods and what they wrote."""
    await asyncio.to_thread(
        running.helm,
        *("upgrade", RELEASE, _CHART, "--namespace", RELEASE, "--reuse-values", *_values(True)),
    )
    await asyncio.to_thread(
        running.kubectl, "--namespace", RELEASE, "scale", "deployment", RELEASE, "--replicas=0"
    )
    teams = [f"team-{number:03d}" for number in range(size.namespaces)]
    quota = 2 * size.gpus / size.namespaces  # nobody borrows, so nobody is evicted
    await apply(client, [("/api/v1/namespaces", {"metadata": {"name": team}}) for team in teams])
    projects = of_group(GROUP, VERSION, "gpuprojects")
    head = {"apiVersion": API_VERSION, "kind": "GPUProject"}
    await apply(
        client,
        [
            (projects, {**head, "metadata": {"name": team}, "spec": _project(team, quota)})
            for team in teams
        ],
    )
    numbers = range(size.nodes)
    nodes = of_group(GROUP, VERSION, "gpunodes")
    await apply(client, [(nodes, gpu_node(number)) for number in numbers])
    await apply(client, [(core("pods", RELEASE), agent_pod(number)) for number in numbers])
    slots = asyncio.Semaphore(_AT_ONCE)
    await asyncio.gather(*(_agent(client, number, slots) for number in numbers))


def _project(namespace: str, quota: float) -> dict[str, object]:
    return {"namespaces": [namespace], "quota": quota}


async def _agent(client: Client, number: int, slots: asyncio.Semaphore) -> None:
    """Its node's GPUs, and its address once it runs: kwok may write a status more than once."""
    async with slots, asyncio.timeout(_AGENTS_SECONDS):
        path = of_group(GROUP, VERSION, "gpunodes")
        await client.merge_patch(f"{path}/gpu-{number:04d}/status", gpu_node_status(number))
        at = pod_path(RELEASE, agent_name(number))
        stood = 0
        while stood < _STANDS:
            await asyncio.sleep(_LOOK_SECONDS)
            status = (await client.get(at))["status"]
            if has_address(status):
                stood += 1
            elif status.get("phase") == "Running":
                stood = 0
                await client.merge_patch(f"{at}/status", agent_address(number))


class AgentsProgram:
    """The program that answers for all agents."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """``process``: is ready."""
        self._process = process

    async def command(self, line: str) -> dict[str, object]:
        """Say one, and what it answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        answer = await self._process.stdout.readline()
        found: dict[str, object] = yaml.safe_load(answer)
        return found

    def check(self) -> None:
        """Raise when it has ended."""
        if self._process.returncode is not None:
            raise RuntimeError(f"the agents have ended with {self._process.returncode}")


@asynccontextmanager
async def agents_program(
    running: Running, size: Size, port: int, began: float
) -> AsyncIterator[AgentsProgram]:
    """It ends with its input; ``began``: of its clock."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.perf.signals.agents"),
        *("--kubeconfig", str(running.kubeconfig), "--agents", str(size.nodes)),
        *("--port", str(port), "--began", str(began)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        if not await process.stdout.readline():
            raise RuntimeError("the agents have not begun")
        yield AgentsProgram(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
