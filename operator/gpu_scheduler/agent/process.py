"""The agent's process: puts the parts together, serves health and metrics, ends when told to.

On SIGTERM nothing is cleaned up but the driver's handles: GPUNode stays true for as long as the
Lease lives, and the next agent goes on from there.
"""

import asyncio
import logging
import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web

from gpu_scheduler import __version__
from gpu_scheduler.agent import processes, selftest
from gpu_scheduler.agent.agent import Agent, LookTiming
from gpu_scheduler.agent.container_host import ContainerHost
from gpu_scheduler.agent.driver import Driver, DriverError
from gpu_scheduler.agent.health import Health
from gpu_scheduler.agent.heartbeat import Heartbeat
from gpu_scheduler.agent.history.answering import Answering
from gpu_scheduler.agent.history.history_clock import HistoryClock
from gpu_scheduler.agent.history.history_file import remove, rings
from gpu_scheduler.agent.history.marks import Marks
from gpu_scheduler.agent.history.recorder import FILE, Recorder
from gpu_scheduler.agent.history.slot import LOOK_SECONDS
from gpu_scheduler.agent.history.summary import rows
from gpu_scheduler.agent.kernel_start import start_kernel_limits
from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.nvml import NvmlDriver
from gpu_scheduler.agent.orders import OrdersFile
from gpu_scheduler.agent.pods import Pods
from gpu_scheduler.agent.poll import Poller
from gpu_scheduler.agent.procfs import ProcFS
from gpu_scheduler.agent.publish import Publisher
from gpu_scheduler.agent.sampler import Sampler
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.agent.usage import Surroundings, usage
from gpu_scheduler.agent.usage_port import route
from gpu_scheduler.agent.watchdog import Watchdog
from gpu_scheduler.api.orders import Orders
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.web.admin import app as admin_app
from gpu_scheduler.web.admin import serve
from gpu_scheduler.web.bounded import Listener

log = logging.getLogger(__name__)

_CLOSE_SECONDS = 3.0


async def run(settings: AgentSettings, connection: Connection, driver: Driver | None = None) -> int:
    """Run until told to stop (0) or until a part fails (1): the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Client(connection, user_agent=f"gpu-scheduler-agent/{__version__}") as client:
        node = AgentProcess(settings, client, driver or NvmlDriver())
        return await node.run(stop)


class AgentProcess:
    """All parts of an agent."""

    def __init__(self, settings: AgentSettings, client: Client, driver: Driver) -> None:
        """Build them; nothing runs yet."""
        procfs = self._procfs = ProcFS()
        self._settings = settings
        self._client = client
        self._driver = driver
        self.pods = Pods(lambda: self.agent.pods_changed())
        self.publisher = Publisher(client, settings.node)
        self.clock = Clock()
        self.metrics = AgentMetrics(settings.node, self.clock)
        self._ordered = asyncio.Event()
        self._usage_digest = ""
        self._orders = OrdersFile(Path(settings.orders_file), self._take)
        sampler = Sampler(
            driver,
            procfs,
            Health(settings.ignored_xids),
            unified_memory_mib=settings.unified_memory_mib,
        )
        watchdog = Watchdog(tolerance_mib=settings.tolerance_mib, samples=settings.over_cap_samples)
        self._poller = Poller(sampler, procfs, watchdog, _around(settings))
        self.agent = Agent(
            self._poller,
            self.pods,
            self.publisher,
            self.metrics,
            LookTiming(
                sample_seconds=settings.sample_seconds, answer_seconds=settings.answer_seconds
            ),
            refresh=self._orders.read,
        )
        self.agent.self_test = _verdict(Path(settings.verdict_file))
        self._heartbeat = Heartbeat(
            client,
            settings,
            alive=lambda: self.publisher.behind_seconds() < settings.lease_seconds,
        )

    async def run(self, stop: asyncio.Event) -> int:
        """Run until ``stop``; the exit code."""
        admin = await self._serve()
        working = asyncio.create_task(self._work(), name="agent")
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if working.done() and not working.cancelled() and (error := working.exception()):
                log.error("the agent ended: %r", error, exc_info=error)
            working.cancel()
            await asyncio.wait({working}, timeout=_CLOSE_SECONDS)
        finally:
            stopping.cancel()
            if admin is not None:
                await admin.cleanup()
            await self._close()
        log.info("ended")
        return 0 if stop.is_set() else 1

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.clock.run())
            group.create_task(self._orders.run())
            if self._settings.kernel_limits:
                start = partial(start_kernel_limits, self._settings, self._driver, self._poller)
                await self.agent.in_thread(lambda: self._kernel(start()))
            group.create_task(self.agent.run())
            await self._ordered.wait()
            self._poller.recorder = _recorder(self._settings, self._procfs)
            log.info("%s: %d pods with GPUs", self._settings.node, len(self.pods.containers))
            self.agent.go_on(await self.publisher.last())
            self.clock.begin(self._client.heard)  # only to say it where they differ
            group.create_task(self.publisher.run())
            group.create_task(self._heartbeat.run())

    def _take(self, orders: Orders) -> None:
        self.pods.take(orders, time.monotonic())
        self.publisher.take(orders)
        self._heartbeat.take(orders)
        self._usage_digest = orders.usage_digest
        self._ordered.set()

    def _answering(self) -> Answering | None:
        recorder = self._poller.recorder
        return recorder.answering if recorder is not None else None

    def _kernel(self, layer: selftest.Layer) -> None:
        log.info("kernel limits %s: %s", layer.result, layer.detail)
        others = self.agent.self_test.layers[1:] if self.agent.self_test else ()
        self.agent.self_test = selftest.verdict(layer, *others)

    def application(self) -> web.Application:
        """All that is answered at the agent's port."""
        made = admin_app(self.metrics.registry, ready=self._missing, state=lambda: "agent")
        made.add_routes([route(lambda: self._usage_digest, self._answering)])
        return made

    async def _serve(self) -> Listener | None:
        if not self._settings.admin_port:
            return None
        host, port = self._settings.admin_host, self._settings.admin_port
        return await serve(self.application(), host, port)

    def _missing(self) -> str:
        if not self._ordered.is_set():
            return "the operator has not said yet which pods of the node are whose\n"
        if not self.metrics.counts.samples:
            return "no look at the devices yet\n"
        return "the driver does not answer\n" if self.agent.stuck else ""

    async def _close(self) -> None:
        if self.agent.stuck:
            # A thread inside a driver that hangs cannot be ended, and the interpreter would wait.
            logging.shutdown()
            os._exit(0)
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.agent.in_thread(self._poller.close)
        except TimeoutError:
            log.warning("the driver did not let go in time")
        self.agent.close()


def _verdict(path: Path) -> selftest.SelftestVerdict | None:
    try:
        return selftest.parse(path.read_text())
    except (OSError, ValueError) as error:
        log.info("no verdict of a self-test: %s", error)
        return None


def _recorder(settings: AgentSettings, procfs: ProcFS) -> Recorder | None:
    if not settings.history_folder:
        return None
    return Recorder(
        Path(settings.history_folder),
        settings.history_megabytes,
        HistoryClock(_boot_id()),
        ContainerHost(Path(settings.cgroup_root)).read,
        Marks(procfs).read,
    )


def kept_rows(settings: AgentSettings) -> list[dict[str, Any]]:
    """What this node's history says, see ``summary.rows``.

    Raises:
        HistoryError: there is none that can be read.
    """
    clock = HistoryClock(_boot_id())
    slots = rings(Path(settings.history_folder) / FILE, clock)
    return rows(slots, int(clock.now()) // LOOK_SECONDS)


def remove_history(settings: AgentSettings) -> list[Path]:
    """Remove what this node's history is kept in; the files that there were.

    An agent that runs goes on in the file that it has open, which is gone with it.
    """
    return remove(Path(settings.history_folder) / FILE)


def processes_now(settings: AgentSettings, driver: Driver | None = None) -> list[dict[str, Any]]:
    """Who is on this node's devices, see ``processes.rows``: a look of its own.

    Raises:
        DriverError: there is no driver, or it does not answer.
    """
    pods, now = Pods(), time.monotonic()
    OrdersFile(Path(settings.orders_file), lambda orders: pods.take(orders, now)).read()
    sampler = Sampler(driver or NvmlDriver(), ProcFS(), Health(settings.ignored_xids))
    try:
        sample = sampler.sample(now)
    finally:
        sampler.close()
    if sample.problem is not None:
        raise DriverError(sample.problem)
    return processes.rows(sample, usage(sample, pods.at(now), pods.others, _around(settings)))


def _around(settings: AgentSettings) -> Surroundings:
    return Surroundings(
        daemons=frozenset(settings.daemons),
        own_pod=settings.pod_uid,
        own_cgroup=_own_cgroup(),
    )


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _own_cgroup() -> str:
    try:
        return Path("/proc/self/cgroup").read_text()
    except OSError:
        return ""
