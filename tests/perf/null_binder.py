"""A binder that plans nothing: pod i goes to node i mod n, and that is all.

The ceiling for a scheduler of this client stack: the same reflector, client and event loop as the
operator's and as many writes in flight, but no state, no plan and no ledger. Run by the benchmark
as a process of its own: ``python -m tests.perf.null_binder --nodes 100``.
"""

import argparse
import asyncio
import gc
from collections import deque

import orjson
import uvloop
from tests.perf.workload import NULL_SCHEDULER

from gpu_scheduler.kube import config, errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.kube.paths import PODS
from gpu_scheduler.kube.paths import pod as pod_path
from gpu_scheduler.kube.reflector import Reflector

CONCURRENCY = 50
SYNCED = "synced:"


class NullBinder:
    """Binds every pod of its scheduler name once."""

    def __init__(self, client: Client, nodes: list[str]) -> None:
        """``nodes``: names, taken in turn."""
        self._client, self._nodes = client, nodes
        self._seen: set[str] = set()
        self._todo: deque[tuple[Pod, str]] = deque()
        self._ready = asyncio.Semaphore(0)

    def changed(self, obj: Pod) -> None:
        """See ``EventHandler``."""
        if obj.spec.scheduler_name != NULL_SCHEDULER or obj.spec.node_name:
            return
        if obj.metadata.uid not in self._seen:
            self._todo.append((obj, self._nodes[len(self._seen) % len(self._nodes)]))
            self._seen.add(obj.metadata.uid)
            self._ready.release()

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""

    def replaced(self) -> None:
        """See ``EventHandler``."""

    async def work(self) -> None:
        """Bind for ever."""
        while True:
            await self._ready.acquire()
            pod, node = self._todo.popleft()
            meta = pod.metadata
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            }
            path = pod_path(meta.namespace, meta.name, "binding")
            try:
                await self._client.request("POST", path, body=orjson.dumps(body))
            except (errors.Conflict, errors.NotFound):
                continue


async def run(nodes: list[str]) -> None:
    """Watch and bind until stopped."""
    async with Client(
        config.load(), user_agent="null-binder", concurrency=CONCURRENCY + 20
    ) as client:
        binder = NullBinder(client, nodes)
        reflector = Reflector(client, PODS, Pod, binder)
        async with asyncio.TaskGroup() as group:
            group.create_task(reflector.run())
            await reflector.synced.wait()
            gc.collect()
            gc.freeze()
            print(SYNCED, len(reflector), "pods", flush=True)  # noqa: T201
            for _ in range(CONCURRENCY):
                group.create_task(binder.work())


def main() -> None:
    """Bind until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--prefix", default="gpu")
    options = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)
    uvloop.run(run([f"{options.prefix}-{number:04d}" for number in range(options.nodes)]))


if __name__ == "__main__":
    main()
