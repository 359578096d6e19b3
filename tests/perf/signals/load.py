"""Work on the cluster that always is as much: jobs end and come at the same rate.

A job ends as its pod does, which kwok is told to end; another one comes into its namespace at
once, and the ended one is deleted a little later. Pods are followed by a watch of the harness's
own; times are monotonic seconds.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NoReturn

from tests.perf.contenders import END_NOW
from tests.perf.queue_watch import Placed
from tests.perf.signals.size import Size
from tests.perf.workload import IMAGE

from gpu_scheduler.api.names import API_VERSION, GROUP, LABEL_JOB, VERSION
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import of_group, pod

Work = tuple[str, str]
"""Namespace and name of a GPUJob."""
_ENDED_SECONDS = 8.0  # that an ended job is there: the operator writes its last status


def namespace_of(number: int, size: Size) -> str:
    """Where a job is."""
    return f"team-{number % size.namespaces:03d}"


def gpu_job(number: int, namespace: str, milli: int) -> tuple[str, dict[str, Any]]:
    """Path and body of a GPUJob."""
    body = {
        "apiVersion": API_VERSION,
        "kind": "GPUJob",
        "metadata": {"name": f"train-{number:06d}", "namespace": namespace},
        "spec": {"image": IMAGE, "gpu": milli / 1000},
    }
    return of_group(GROUP, VERSION, "gpujobs", namespace), body


@dataclass(slots=True)
class PodEyes:
    """A sink for pods: which work runs, and when each was bound."""

    bound: dict[Work, float] = field(default_factory=dict)
    running: dict[str, tuple[Work, str]] = field(default_factory=dict)  # by uid: work and pod
    bindings: list[float] = field(default_factory=list)

    def changed(self, obj: Placed) -> None:
        """See ``EventHandler``."""
        meta = obj.metadata
        job = meta.labels.get(LABEL_JOB)
        if job is None or not obj.spec.node_name:
            return
        work = meta.namespace, job
        if work not in self.bound:
            self.bound[work] = time.monotonic()
            self.bindings.append(self.bound[work])
        if obj.status.phase == "Running" and not meta.deletion_timestamp:
            self.running[meta.uid] = work, meta.name
        else:
            self.running.pop(meta.uid, None)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""
        self.running.pop(uid, None)

    def replaced(self) -> None:
        """See ``EventHandler``."""

    def works(self) -> dict[Work, float]:
        """What runs, and since when it is bound."""
        return {work: self.bound[work] for work, _ in self.running.values()}

    def still(self, works: Mapping[Work, float]) -> dict[Work, float]:
        """Of these, those that have gone on: what ended meanwhile need not be shown."""
        running = {work for work, _ in self.running.values()}
        return {work: at for work, at in works.items() if work in running}


class Turnover:
    """So many jobs a second end, and as many come."""

    def __init__(self, client: Client, eyes: PodEyes, size: Size, seed: int = 7) -> None:
        """Nothing turns before ``run``."""
        self._client = client
        self._eyes = eyes
        self._size = size
        self._random = Random(seed)
        self._next = size.jobs
        self._ended: deque[tuple[float, Work]] = deque()
        self.ended = 0

    async def run(self) -> NoReturn:
        """Until cancelled."""
        due = time.monotonic()
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._turn())
                due = max(due + 1 / self._size.turns, time.monotonic())
                await asyncio.sleep(due - time.monotonic())
        raise AssertionError("the loop does not end")

    async def _turn(self) -> None:
        if not self._eyes.running:
            return
        uid = self._random.choice(tuple(self._eyes.running))
        (namespace, job), name = self._eyes.running.pop(uid)
        number, self._next = self._next, self._next + 1
        try:
            await self._client.merge_patch(pod(namespace, name), END_NOW)
        except errors.NotFound:
            return  # the operator was quicker: its phase says how many it evicted
        self._ended.append((time.monotonic(), (namespace, job)))
        self.ended += 1
        await self._client.create(*gpu_job(number, namespace, self._size.milli))
        while self._ended and self._ended[0][0] < time.monotonic() - _ENDED_SECONDS:
            await self._delete(self._ended.popleft()[1])

    async def _delete(self, work: Work) -> None:
        namespace, name = work
        try:
            path = of_group(GROUP, VERSION, "gpujobs", namespace, name)
            await self._client.delete(path, propagation="Background")
        except errors.NotFound:
            return
