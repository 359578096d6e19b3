"""The agent of a node: looks every few seconds, reports what changed, beats its heart.

Looks run in one thread and are given ``answer_seconds``; a driver that hangs longer makes the
devices unhealthy without stopping anything else. Nothing is reported before the operator has said
which pods are whose, since until then every process would be a stranger. Operator and API server
may be away at any time: looks go on with what was said last, and what changed is written when they
are back. What goes wrong in one look, and was not foreseen, concerns that look alone.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from gpu_scheduler.agent import report
from gpu_scheduler.agent.foreign import Lasting
from gpu_scheduler.agent.metrics import AgentMetrics
from gpu_scheduler.agent.pods import Pods
from gpu_scheduler.agent.poll import PodSnapshot, Poll, Poller
from gpu_scheduler.agent.publish import Publisher
from gpu_scheduler.agent.selftest import SETTLE_SECONDS, doubted
from gpu_scheduler.agent.selftest import SelftestVerdict as SelfTest
from gpu_scheduler.agent.usage import Usage
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.kube.times import utc_now
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookTiming:
    """When looks are taken, and by which clocks.

    Attributes:
        sample_seconds: Between two looks.
        answer_seconds: After which a driver that does not answer makes its devices unhealthy.
        clock: Monotonic seconds.
        wall: The time as it is reported.
    """

    sample_seconds: float
    answer_seconds: float
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], str] = utc_now


class Agent:
    """Looks, and passes on what it found."""

    def __init__(
        self,
        poller: Poller,
        pods: Pods,
        publisher: Publisher,
        metrics: AgentMetrics,
        timing: LookTiming,
        *,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """``refresh`` is called before each look: what the operator says is read."""
        self._poller = poller
        self._pods = pods
        self._refresh = refresh
        self._publisher = publisher
        self._metrics = metrics
        self._timing = timing
        self._clock = timing.clock
        self.self_test: SelfTest | None = None
        """Which layers hold a container to its cap, as tried at the start."""
        self._failed_before: tuple[str, ...] = ()
        self._began = self._clock()
        self.status = GPUNodeStatus.model_validate({})
        """What was reported last."""
        self.reporting = False
        """What is found is judged and written; not before the operator's first word."""
        self.stuck = False
        """The driver has not answered for ``answer_seconds``."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="driver")
        self._lasting = Lasting()
        self._news = asyncio.Event()

    def pods_changed(self) -> None:
        """A pod of ours is new or has changed."""
        self._news.set()

    def go_on(self, last: GPUNodeStatus) -> None:
        """Go on from what was reported before this agent began, and report from now on."""
        self.status = last
        self.reporting = True
        self._failed_before = tuple(last.failed_isolation or ())

    async def run(self) -> NoReturn:
        """Poll for ever."""
        due = self._clock()
        while True:
            try:
                await self.poll()
            except Exception:
                # What cannot be looked at is not well: the Lease goes on, so it must be said.
                unexpected("look", "all devices")
                self._report_unreadable("the agent failed to look; its log says why")
            # Evenly spaced, but never a burst to make up for a look that took long.
            due = max(due + self._timing.sample_seconds, self._clock())
            await self._rest(due)

    async def poll(self) -> Poll:
        """Poll once and report."""
        self._refresh()
        work = asyncio.get_running_loop().run_in_executor(
            self._pool,
            partial(self._poller.poll, self._clock(), self._timing.wall(), self._known()),
        )
        done, _ = await asyncio.wait({work}, timeout=self._timing.answer_seconds)
        if not done:
            self.stuck = True
            self._report_unreadable(f"NVML has not answered for {self._timing.answer_seconds:g} s")
            await asyncio.wait({work})
        self.stuck = False
        found = work.result()
        self._take(found)
        return found

    async def in_thread(self, work: Callable[[], None]) -> None:
        """Do something with the driver, where nothing else is done with it at that moment."""
        await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _take(self, look: Poll) -> None:
        counts = self._metrics.counts
        counts.samples += 1
        counts.sample_seconds += look.seconds
        counts.killed += len(look.killed)
        for device in look.sample.devices:
            if device.load.busy_ratio:
                self._metrics.last_active[device.facts.uuid] = time.time()
        if look.killed:
            log.warning("above their cap, policy kill: killed %s", look.killed)
        self._metrics.sample = look.sample
        self._metrics.usage = look.usage if self.reporting else Usage((), {})
        if look.sample.problem is not None:
            self._report_unreadable(look.sample.problem)
            return
        if not self.reporting:
            return
        foreign = self._lasting.update(look.usage.foreign, look.usage.unnamed, look.sample.at)
        self._report(report.status(look, foreign, self._verdict()))

    def _verdict(self) -> SelfTest | None:
        if self.self_test is None or not self._failed_before:
            return self.self_test
        settled = self._clock() - self._began >= SETTLE_SECONDS
        return doubted(self.self_test, self._failed_before, settled=settled)

    def _report_unreadable(self, problem: str) -> None:
        self._report(report.unreadable(self.status, problem))

    def _report(self, status: GPUNodeStatus) -> None:
        if not self.reporting:
            return
        for device in status.devices:
            known = next((d for d in self.status.devices if d.uuid == device.uuid), None)
            if known is None or known.message != device.message:
                log.info("device %s: %s", device.uuid, device.message or "well")
        self.status = status
        self._publisher.publish(status)

    def _known(self) -> PodSnapshot:
        return PodSnapshot(self._pods.at(self._clock()), dict(self._pods.others))

    async def _rest(self, until: float) -> None:
        """Wait for the next look; new containers get the driver's limit at once."""
        while (left := until - self._clock()) > 0:
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                return
            self._news.clear()
            if self._poller.kernel is not None:
                limit = partial(self._poller.limit, self._metrics.sample, self._known())
                try:
                    await self.in_thread(limit)
                except Exception:
                    unexpected("kernel-limits", "new containers")

    def close(self) -> None:
        """Begin nothing more in the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)
