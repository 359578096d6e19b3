"""What is compared, and how each one's scheduler is started and stopped.

Only the scheduler that is measured runs, besides the stock one, which every cluster has. Each is a
process of its own that belongs to the cluster and ends with it.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.api.free_port import free_port
from tests.perf import null_binder
from tests.perf.install import RELEASE, operator_kubeconfig
from tests.perf.settings import ROOT
from tests.perf.workload import (
    CAP_IMAGE,
    NULL_SCHEDULER,
    asking_deployment,
    gpu_job,
    plain_deployment,
    plain_job,
    rendered_deployment,
    rendered_job,
)

from cluster import Running, process

OPERATOR, NULL_BINDER = "operator", "null-binder"
_LEADING, _SYNCED = "leading", "synced:"
_START_SECONDS = 60.0
_LOG_LINES = 15


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to get pods bound.

    Attributes:
        name: short, for files and the command line.
        title: for people.
        scheduler: what has to run.
        placement: the operator's setting of that name.
        rendered: the null binder gets pods as large as ours; a Deployment's are ours before any
            policy sees them.
        capped: libgpucap is delivered, which makes pods larger by a volume and an init container.
        deployment: a Deployment's pods, and not a Job's; with our operator they ask by a label.
    """

    name: str
    title: str
    scheduler: Literal["stock", "null-binder", "operator"]
    placement: str = "auto"
    rendered: bool = False
    capped: bool = False
    deployment: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """Of the operator."""
        image = {"GPUSCHED_CAP_IMAGE": CAP_IMAGE} if self.capped else {}
        return {"GPUSCHED_PLACEMENT": self.placement, **image}

    def job(self, name: str, pods: int) -> tuple[str, Any]:
        """Path and body of what makes the pods."""
        if self.scheduler == "operator":
            if self.deployment:
                ours = rendered_deployment if self.rendered else asking_deployment
                return ours(name, pods)
            return gpu_job(name, pods)
        if self.scheduler == "null-binder":
            if self.rendered:
                return rendered_job(name, pods, scheduler=NULL_SCHEDULER)
            return plain_job(name, pods, scheduler=NULL_SCHEDULER, whole_gpus=0)
        if self.deployment:
            return plain_deployment(name, pods, whole_gpus=1)
        return plain_job(name, pods, scheduler="default-scheduler", whole_gpus=1)


STOCK = Variant("stock", "stock kube-scheduler, whole GPUs", "stock")
NULL = Variant("null", "a binder that plans nothing, our pods", "null-binder", rendered=True)
NULL_PLAIN = Variant("null-plain", "a binder that plans nothing, plain pods", "null-binder")
BIND = Variant("bind", "gpu-scheduler, 0.5 GPU, bind path", "operator", "bind")
BIND_CAP = Variant(
    "bind-cap", "gpu-scheduler, 0.5 GPU, bind path, libgpucap delivered", "operator", "bind",
    capped=True,
)  # fmt: skip
GATE = Variant("gate", "gpu-scheduler, 0.5 GPU, gate path", "operator", "gate")
# Capped: the chart's policy puts the library into a pod that asks, and the operator looks for it.
SHARE = Variant(
    "share", "gpu-scheduler, 0.5 GPU, pods of a Deployment that ask", "operator", "bind",
    capped=True, deployment=True,
)  # fmt: skip
SHARE_RENDERED = Variant(
    "share-rendered", "the same, rendered before", "operator", "bind",
    rendered=True, capped=True, deployment=True,
)  # fmt: skip
STOCK_DEPLOYMENT = Variant(
    "stock-deployment", "stock kube-scheduler, whole GPUs, a Deployment", "stock", deployment=True
)
AUTO = Variant("auto", "gpu-scheduler, 0.5 GPU", "operator", "auto")
VARIANTS = (
    STOCK,
    NULL,
    NULL_PLAIN,
    BIND,
    BIND_CAP,
    GATE,
    STOCK_DEPLOYMENT,
    SHARE,
    SHARE_RENDERED,
)
CORE_VARIANTS = (STOCK, NULL, BIND, GATE)


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the start of the operator's process until it led, and had listed all."""

    leading: float
    synced: float


@asynccontextmanager
async def scheduler_of(running: Running, variant: Variant, nodes: int) -> AsyncIterator[None]:
    """Runs what the variant needs; the stock scheduler runs anyway."""
    if variant.scheduler == "stock":
        yield
        return
    if variant.scheduler == "operator":
        await start_operator(running, variant.environment)
    else:
        await _start_null_binder(running, nodes)
    try:
        yield
    finally:
        running.stop_process(variant.scheduler)


async def start_operator(
    running: Running,
    environment: Mapping[str, str],
    *,
    root: Path = ROOT,
    seconds: float = _START_SECONDS,
    program: str = "gpu_scheduler.main",
) -> Start:
    """Start the operator and wait until it leads and has listed everything.

    Args:
        running: the cluster, to which the process then belongs.
        environment: settings that differ from the defaults.
        root: the checkout whose operator is run.
        seconds: for each of the two waits.
        program: the module that runs it.
    """
    settings = {
        "KUBECONFIG": str(operator_kubeconfig(running)),
        "GPUSCHED_LEASE_NAMESPACE": RELEASE,
        "GPUSCHED_ADMIN_HOST": "127.0.0.1",
        "GPUSCHED_ADMIN_PORT": str(free_port()),
        **environment,
    }
    log, offset = _log(running, OPERATOR)
    began = time.monotonic()
    _spawn(running, OPERATOR, settings, (program, "operator"), root)
    await _wait_for_line(running, log, offset, _LEADING, seconds)
    leading = time.monotonic() - began
    await _wait_for_line(running, log, offset, _SYNCED, seconds)
    return Start(leading, time.monotonic() - began)


async def _start_null_binder(running: Running, nodes: int) -> None:
    log, offset = _log(running, NULL_BINDER)
    settings = {"KUBECONFIG": str(running.kubeconfig)}
    _spawn(running, NULL_BINDER, settings, ("tests.perf.null_binder", "--nodes", str(nodes)))
    await _wait_for_line(running, log, offset, null_binder.SYNCED)


def _spawn(
    running: Running,
    name: str,
    environment: Mapping[str, str],
    module: tuple[str, ...],
    root: Path = ROOT,
) -> None:
    # The cluster's programs get a clean environment, so everything is said here.
    path = ":".join(str(root / part) for part in ("operator", "hack", "."))
    assignments = [f"{key}={value}" for key, value in environment.items()]
    env = shutil.which("env") or "/usr/bin/env"
    argv = (env, f"PYTHONPATH={path}", *assignments, sys.executable, "-m", *module)
    running.run_process(name, argv)


def _log(running: Running, name: str) -> tuple[Path, int]:
    log = running.log_file(name)
    return log, log.stat().st_size if log.exists() else 0


def check_alive(running: Running) -> None:
    """Make sure that no program of the cluster has ended by itself.

    Raises:
        RuntimeError: one has; its last lines are told. An operator ends when it loses its Lease,
            for example because the machine is busy with something else.
    """
    for name, found in running.processes.items():
        if not process.is_alive(found):
            lines = running.log_file(name).read_text(errors="replace").splitlines()
            raise RuntimeError("\n".join([f"{name} has ended:", *lines[-_LOG_LINES:]]))


async def _wait_for_line(
    running: Running, log: Path, offset: int, text: str, seconds: float = _START_SECONDS
) -> None:
    async with asyncio.timeout(seconds):
        while text.encode() not in _tail(log, offset):
            check_alive(running)
            await asyncio.sleep(0.01)


def _tail(log: Path, offset: int) -> bytes:
    if not log.exists():
        return b""
    with log.open("rb") as file:
        file.seek(offset)
        return file.read()
