"""A server, and a reflector of its pods that tells a recorder."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.unit.kube.fake_server import FakeServer, Obj
from tests.unit.kube.until import Changes

from gpu_scheduler.kube.backoff import Timing
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.reflector import Reflector, WatchOptions

PODS = "/api/v1/namespaces/team/pods"


def on_node(node: str = "n1") -> Obj:
    return {"spec": {"nodeName": node}}


class Recorder:
    """What a handler was told, and the state that follows from it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.pods: dict[str, Pod] = {}
        self.changes = Changes()

    def changed(self, obj: Pod) -> None:
        self.pods[obj.metadata.uid] = obj
        self.note(f"changed {obj.metadata.name} {obj.metadata.uid} {obj.spec.node_name}")

    def gone(self, namespace: str, name: str, uid: str) -> None:
        del self.pods[uid]
        self.note(f"gone {name} {uid}")

    def note(self, text: str) -> None:
        self.told.append(text)
        self.changes.happened()

    async def until_told(self, *texts: str) -> None:
        await self.changes.until(lambda: all(text in self.told for text in texts))


class Stage:
    """A server, a client and a running reflector."""

    def __init__(self, server: FakeServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.handler = Recorder()
        self.slept: list[float] = []
        self.watches = client.watches
        self.missed: list[str] = []  # what was lost at each wait
        self.reflector: Reflector[Pod]
        self.task: asyncio.Task[None] | None = None

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.missed.append(self.watches.missing())
        await asyncio.sleep(0)

    def start(self, clock: Callable[[], float] = time.monotonic, **settings: Any) -> None:
        self.reflector = Reflector(
            self.client,
            PODS,
            Pod,
            self.handler,
            WatchOptions(**settings),
            Timing(clock, sleep=self.sleep, random=lambda: 0.0),
        )
        store = self.reflector._store
        replace = store.replace

        def noted(*listed: Any) -> None:
            replace(*listed)
            self.handler.note("replaced")

        store.replace = noted  # type: ignore[method-assign]
        self.task = asyncio.create_task(self.reflector.run())

    async def start_watching(self, **settings: Any) -> None:
        self.start(**settings)
        await self.watching()

    async def end(self) -> None:
        """Stop the reflector."""
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    async def watching(self) -> None:
        await self.server.changes.until(lambda: self.server.open_watches > 0)

    async def until_watches(self, number: int) -> None:
        await self.server.changes.until(lambda: len(self.server.watches_seen()) >= number)


@contextlib.asynccontextmanager
async def on_stage() -> AsyncIterator[Stage]:
    """A stage with nothing on it; what a test started is stopped."""
    async with (
        FakeServer() as server,
        Client(server.connection, timing=Timing(random=lambda: 0.0)) as client,
    ):
        stage = Stage(server, client)
        yield stage
        await stage.end()
