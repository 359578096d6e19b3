"""A leader and everything around it, in virtual time: what one history is played on.

The operator is the real one, put together by its own module; kopf's part is played by our own
handlers, called the way kopf calls them. Nothing of it knows that the API server is in memory.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import msgspec
from tests.unit.generated import controllers
from tests.unit.generated.controllers import INDEX
from tests.unit.generated.server import ENDED, REPLICA_SETS, Server, path_of
from tests.unit.generated.shares import CAP_IMAGE, LACKS
from tests.unit.generated.values import Obj
from tests.unit.runtime.virtual_loop import clock

from gpu_scheduler.api.names import GROUP, LABEL_SHARE, VERSION
from gpu_scheduler.controllers import handlers
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.settings import OperatorSettings
from gpu_scheduler.runtime.operator import Operator
from gpu_scheduler.sweeps.runtime.sweeping import Sweeping

# Patience is short, so that a history may be.
SETTINGS = OperatorSettings(
    identity="leader",
    write_concurrency=4,
    stuck_seconds=5,
    avoid_seconds=5,
    resync_seconds=20,
    cap_image=CAP_IMAGE,
    read_logs=True,
)
ROOT = f"/apis/{GROUP}/{VERSION}"
# Where an object that no API server hands out may be met with an exception, which is counted and
# concerns that object alone. Nowhere else, and with possible objects not even there.
AT_THE_BORDER = {
    "PodHandler",
    "NodeHandler",
    "JobHandler",
    "Heartbeats",
    "intake",
    "kopf",
    "reconcile",
    "status",
}
EPOCH = 1_767_229_200.0  # of the virtual clock's zero: 2026-01-01T01:00:00Z


class Unobserved:
    """Throws observations away."""

    def queue_wait_seconds(self, seconds: float, work_type: str) -> None:
        pass

    def job_run_seconds(self, seconds: float, work_type: str) -> None:
        pass

    def bind_seconds(self, seconds: float) -> None:
        pass

    def cycle_seconds(self, seconds: float, steps: object) -> None:
        pass


class Stage:
    """A server, and the operator that leads now, with these settings."""

    def __init__(
        self,
        fault: Callable[[str, int], str] = lambda path, tries: "",
        settings: OperatorSettings = SETTINGS,
    ) -> None:
        self.settings = settings
        self.use(Server(fault))
        self.prepared: Callable[[Operator], None] = lambda operator: None  # before one leads
        self.round: Callable[[Server], None] = controllers.round_of  # of everybody else
        self.clock, self.wall_ahead = Clock, 0.0  # of who leads; seconds
        self.evicted: list[str] = []  # pods that were asked to go: namespace and name
        self.crowded: set[str] = set()  # of these, those on a device that held more than it had
        self.undeserved: list[str] = []  # what got devices and must not
        self.possible = True  # so far, an API server could have handed everything out
        self._before = Counter(counts)
        self._handlers: dict[str, Callable[[str, Obj], None]] = {}
        self._term = 0
        self.longest_silence = (0.0, "")  # seconds, and whose
        self._silent_since: dict[str, float] = {}
        self._task: asyncio.Task[Any] | None = None
        self.operator: Operator

    def use(self, server: Server) -> None:
        """Play on this server."""
        self.server = server
        server.told, server.gets, server.may_go = self._told, self._gets, self._may_go

    async def lead(self, random: Random) -> None:
        """A leader starts, and is told of everything in an order of its own."""
        await self.end()
        self._silent_since.clear()

        def shuffled(objects: list[Obj]) -> list[Obj]:
            return random.sample(objects, len(objects))

        self.server.reorder = shuffled
        self._term += 1
        self.server.streams = self._term % 2 == 0
        self.server.unstreamed.clear()
        self.operator = Operator(
            self.server,
            self.settings,
            Unobserved(),
            f"leader-{self._term}",
            Sweeping,
            self.clock(clock, lambda: EPOCH + clock() + self.wall_ahead),
        )
        self._handlers = handlers_of_kopf(self.operator)
        self.prepared(self.operator)
        self._task = asyncio.ensure_future(self.operator.run())
        await self.passes(0.5)

    async def passes(self, seconds: float) -> None:
        """Time passes; controllers look around a few times."""
        for _ in range(4):
            await self._sleep(seconds / 4)
            self.round(self.server)
        await self._sleep(0.3)
        self.check()

    async def _sleep(self, seconds: float) -> None:
        """Sleep, and look meanwhile for how long jobs say nothing."""
        until = clock() + seconds
        while (left := until - clock()) > 0:
            await asyncio.sleep(min(left, 0.5))
            silent = {each.partition(": ")[0] for each in self.unexplained()}
            self._silent_since = {each: self._silent_since.get(each, clock()) for each in silent}
            for each, since in self._silent_since.items():
                self.longest_silence = max(self.longest_silence, (clock() - since, each))

    async def end(self) -> None:
        """The leader ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    # --- what must hold at every step ---

    def check(self) -> None:
        """The leader leads, nothing unforeseen happened, no device is above its capacity."""
        if self._task is not None and self._task.done():
            self._task.result()
        met = {loop for loop, count in counts.items() if count > self._before[loop]}
        met -= set() if self.possible else AT_THE_BORDER
        assert not met, f"unexpected errors in: {', '.join(sorted(met))}"
        above = {place: milli for place, milli in self.server.held_milli().items() if milli > 1000}
        assert not above, f"devices above their capacity: {above}"
        assert not self.undeserved, f"devices for what must not have them: {self.undeserved}"

    def pods(self, namespace: str, *, shares: bool) -> list[Obj]:
        """Pods of a namespace: those that ask for a share by themselves, or those of jobs."""
        return [
            pod
            for pod in self.server.of("/api/v1/pods")
            if pod["metadata"]["namespace"] == namespace
            and (LABEL_SHARE in (pod["metadata"].get("labels") or {})) is shares
        ]

    def placed(self, namespace: str) -> set[tuple[str, str]]:
        """Job and index of the pods of a namespace that have a node."""
        return {
            (pod["metadata"]["ownerReferences"][0]["name"], pod["metadata"]["annotations"][INDEX])
            for pod in self.pods(namespace, shares=False)
            if pod["spec"].get("nodeName")
        }

    def finish(self, namespace: str, job: str) -> None:
        """A running pod of a job ends well, if there is one."""
        for pod in self.pods(namespace, shares=False):
            owner = pod["metadata"]["ownerReferences"][0]["name"]
            if owner == job and pod["status"]["phase"] == "Running":
                return controllers.finish(self.server, pod)
        return None

    def scale(self, namespace: str, name: str, replicas: int, template: Obj) -> None:
        """So many pods of a template, as a Deployment has them."""
        path = path_of((REPLICA_SETS, namespace, name))
        spec = {"replicas": replicas, "template": template}
        old = self.server.objects.get((REPLICA_SETS, namespace, name))
        if old is not None:
            self.server.put(path, {**old, "spec": spec})
        else:
            self.server.make(REPLICA_SETS, namespace, {"metadata": {"name": name}, "spec": spec})

    def waiting_shares(self, namespace: str) -> list[str]:
        """Pods that ask by themselves and have no place, by name."""
        return [
            pod["metadata"]["name"]
            for pod in self.pods(namespace, shares=True)
            if not pod["spec"].get("nodeName")
        ]

    def unexplained(self) -> list[str]:
        """GPUJobs that wait and do not say why."""
        found = []
        for job in self.server.of(f"{ROOT}/gpujobs"):
            status = job.get("status")
            status = status if isinstance(status, dict) else {}
            phase = status.get("phase")
            if phase in ("Running", *ENDED):
                continue
            if not (status.get("reason") and status.get("message")):
                found.append(f"{job['metadata']['namespace']}/{job['metadata']['name']}: {status}")
        return found

    def charges(self) -> dict[str, Any]:
        """What is charged to whom, in comparable form."""
        ledger = self.operator.state.ledger
        return {
            uid: (charge.node, msgspec.to_builtins(charge.devices))
            for uid, charge in ledger.charges.items()
        }

    def _gets(self, pod: Obj) -> None:
        """A pod gets devices: at no instant may one be above its capacity."""
        part = (pod["metadata"].get("labels") or {}).get(LACKS)
        if part is not None and self.possible:
            self.undeserved.append(f"{pod['metadata']['name']}, which lacks {part}")
        for (node, device), milli in self.server.held_milli().items():
            if milli > 1000:
                self.undeserved.append(f"{node}/{device}: {milli}")

    def _may_go(self, pod: Obj) -> bool:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        self.evicted.append(name)
        if self._is_crowded(pod):
            self.crowded.add(name)
        return True

    def _is_crowded(self, pod: Obj) -> bool:
        """Whether a device of a pod has less now than was granted on it, by the server's truth."""
        ledger = self.operator.state.ledger
        cluster = ledger.cluster
        mib: Counter[tuple[str, str]] = Counter()
        for each in self.server.of("/api/v1/pods"):
            node, devices = self.server.held_by(each)
            for allocated in ledger.resolved(node, devices):
                mib[node, allocated.device] += allocated.mib
        node, devices = self.server.held_by(pod)
        own = {allocated.device for allocated in ledger.resolved(node, devices)}
        return any(
            cluster.dev_id[d] in own and mib[node, cluster.dev_id[d]] > cluster.dev_usable_mib[d]
            for n, each in enumerate(cluster.nodes)
            if each.name == node
            for d in range(cluster.first[n], cluster.first[n + 1])
        )

    def _told(self, kind: str, collection: str, obj: Obj) -> None:
        if told := self._handlers.get(collection):
            told(kind, obj)


def handlers_of_kopf(operator: Operator) -> dict[str, Callable[[str, Obj], None]]:
    """By collection: what kopf would call with the type of an event and its object."""
    registry = handlers.registry(
        operator.informers.custom_resources,
        operator.common.client,
        operator.informers.lists.version,
    )

    def tell(handler: Any, kind: str, obj: Obj) -> None:
        # As kopf has it: decoded from the wire, so nobody changes what a server keeps.
        raw = msgspec.json.decode(msgspec.json.encode(obj))
        routine = handler.fn(event={"type": kind, "object": raw})
        try:
            routine.send(None)
        except StopIteration:
            return
        raise AssertionError("a handler waits for something")

    return {
        f"{ROOT}/{handler.selector.any_name}": partial(tell, handler)  # type: ignore[union-attr]
        for handler in registry._watching.get_all_handlers()
    }
