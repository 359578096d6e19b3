"""When each pod was bound, seen by a watch of the harness's own.

The measured schedulers share nothing with it but the API server, and it costs all of them the
same. Times are those at which the event is read, in monotonic seconds.
"""

import asyncio
import time
from collections.abc import Callable

import msgspec

from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.objects import Meta
from gpu_scheduler.kube.paths import core
from gpu_scheduler.kube.reflector import Reflector

_CHECK_SECONDS = 2.0  # of silence
_JOB_NAME = "batch.kubernetes.io/job-name"
APP = "app"  # label of a Deployment's pods: its name


class _Spec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta = Meta()
    spec: _Spec = _Spec()


class BoundWatch:
    """Follows the pods of one namespace; run ``run`` as a task."""

    def __init__(self, client: Client, namespace: str, check: Callable[[], None]) -> None:
        """``client`` is the harness's own; ``check`` raises when waiting is in vain."""
        self._check = check
        self.reflector = Reflector(client, core("pods", namespace), _Pod, self)
        self.created: dict[str, dict[str, float]] = {}  # Job or Deployment -> pod uid -> when
        self.bound: dict[str, dict[str, float]] = {}
        self._present: dict[str, str] = {}  # pod uid -> Job or Deployment
        self._news = asyncio.Event()

    def changed(self, obj: _Pod) -> None:
        """See ``EventHandler``."""
        now = time.monotonic()
        meta = obj.metadata
        job = meta.labels.get(_JOB_NAME) or meta.labels.get(APP, "")
        self._present[meta.uid] = job
        self.created.setdefault(job, {}).setdefault(meta.uid, now)
        if obj.spec.node_name:
            self.bound.setdefault(job, {}).setdefault(meta.uid, now)
        self._news.set()

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``EventHandler``."""
        self._present.pop(uid, None)
        self._news.set()

    def replaced(self) -> None:
        """See ``EventHandler``."""

    async def until_bound(self, job: str, count: int, seconds: float) -> dict[str, float]:
        """When each of ``count`` pods of a Job or a Deployment was bound.

        Raises:
            TimeoutError: they were not all bound within ``seconds``.
        """
        bound = self.bound.setdefault(job, {})
        try:
            await self._until(lambda: len(bound) >= count, seconds)
        except TimeoutError:
            made = len(self.created.get(job, {}))
            raise TimeoutError(
                f"{job}: {made} of {count} pods created and {len(bound)} bound in {seconds:.0f} s"
            ) from None
        return bound

    async def until_none(self, seconds: float) -> None:
        """Wait until there is no pod any more."""
        await self._until(lambda: not self._present, seconds)

    async def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                self._news.clear()
                try:
                    async with asyncio.timeout(_CHECK_SECONDS):
                        await self._news.wait()
                except TimeoutError:
                    self._check()
