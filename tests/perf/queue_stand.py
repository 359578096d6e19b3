"""A control plane of its own for one scene, with a contender's scheduler and the harness's eyes.

An operator that ends by itself (it loses its Lease where the machine is busy) is started again, as
a kubelet would, and that is counted. All that was started ends with the cluster, also after Ctrl-C
and failure. Called by ``queues``.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.perf import writes
from tests.perf.contenders import Contender
from tests.perf.install import RELEASE, pids, say
from tests.perf.procfs import busy_seconds, cpu_by_name, memory
from tests.perf.queue_watch import Placed, QueueEyes, Stated
from tests.perf.schedulers import OPERATOR, Start, check_alive, start_operator
from tests.perf.settings import Sizes
from tests.perf.workload import NAMESPACE

from cluster import Running, process
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.kubeconfig import from_kubeconfig
from gpu_scheduler.kube.paths import core, job, lease, of_group
from gpu_scheduler.kube.reflector import Reflector

_LOOK_SECONDS, _ALIVE_SECONDS = 0.05, 1.0
_START_SECONDS = 300.0
_QUIET_SECONDS = 3.0
_MACHINE = "machine"


@dataclass(slots=True)
class Stand:
    """What a scene works with."""

    running: Running
    contender: Contender
    client: Client
    eyes: QueueEyes
    sizes: Sizes
    ended_by_itself: int = 0
    _wanted: bool = field(default=False, init=False)

    async def start(self) -> Start:
        """Start the contender's operator; nothing for the stock scheduler, which runs anyway."""
        if self.contender.root is None:
            return Start(0.0, 0.0)
        start = await start_operator(
            self.running, {}, root=self.contender.root, seconds=_START_SECONDS
        )
        self._wanted = True
        return start

    async def kill(self) -> None:
        """SIGKILL the operator, and take away the Lease that the next one would wait for."""
        self._wanted = False
        await asyncio.to_thread(self.running.stop_process, OPERATOR, kill=True)
        await self.client.request("DELETE", lease(RELEASE))

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait; False when it does not hold after so many seconds."""
        deadline, look = time.monotonic() + seconds, 0.0
        while not holds():
            now = time.monotonic()
            if now >= deadline:
                return False
            if now >= look:
                look = now + _ALIVE_SECONDS
                await self.keep_running()
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    async def sure(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        """Wait.

        Raises:
            TimeoutError: it does not hold after so many seconds.
        """
        if not await self.until(holds, seconds):
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")

    async def rest(self, seconds: float) -> None:
        """Let time go by."""
        await self.until(lambda: False, seconds)

    async def quiet(self, seconds: float) -> bool:
        """Wait until nothing is written any more; False when that does not come."""
        deadline, before = time.monotonic() + seconds, await writes.read(self.client)
        while time.monotonic() < deadline:
            await self.rest(_QUIET_SECONDS)
            after = await writes.read(self.client)
            if writes.counted(after) == writes.counted(before):
                return True
            before = after
        return False

    async def keep_running(self) -> None:
        """Start an operator that has ended again; whatever else has ended is an error."""
        found = self.running.processes.get(OPERATOR)
        if self._wanted and found is not None and not process.is_alive(found):
            say("  the operator has ended by itself: starting it again")
            self.ended_by_itself += 1
            self._wanted = False
            await asyncio.to_thread(self.running.stop_process, OPERATOR)
            await self.start()
        check_alive(self.running)

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each program until now, and of the whole machine."""
        return {**cpu_by_name(pids(self.running)), _MACHINE: busy_seconds()}

    def cpu_since(self, before: dict[str, float]) -> dict[str, float]:
        """CPU seconds of each program since ``before``, and of all others on the machine."""
        return used_since(before, self.cpu())

    def rss_mib(self) -> float | None:
        """Memory of the operator."""
        if self.contender.root is None:
            return None
        return round(memory(pids(self.running)[OPERATOR]).rss_mib, 1)


def used_since(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds by program; of one that was started meanwhile, all. ``others``: what is left."""
    used = {
        name: seconds - before.get(name, 0.0) if seconds >= before.get(name, 0.0) else seconds
        for name, seconds in now.items()
    }
    others = used.pop(_MACHINE) - sum(used.values())
    return {name: round(seconds, 2) for name, seconds in {**used, "others": others}.items()}


@asynccontextmanager
async def stand(running: Running, contender: Contender, sizes: Sizes) -> AsyncIterator[Stand]:
    """A stand on a cluster that runs, with its watches in step."""
    connection = from_kubeconfig(running.kubeconfig)
    async with Client(connection, user_agent="bench-queues", timeout_seconds=60.0) as client:
        eyes = QueueEyes()
        gpujobs = of_group(GROUP, VERSION, "gpujobs", NAMESPACE)
        reflectors = (
            Reflector(client, gpujobs, Stated, eyes.gpujobs),
            Reflector(client, job(NAMESPACE), Stated, eyes.jobs),
            Reflector(client, core("pods", NAMESPACE), Placed, eyes.pods),
        )
        tasks = [asyncio.create_task(each.run()) for each in reflectors]
        try:
            for each in reflectors:
                await each.synced.wait()
            yield Stand(running, contender, client, eyes, sizes)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
