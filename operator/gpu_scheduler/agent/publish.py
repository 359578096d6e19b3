"""Writes GPUNode: the object once, its status when it changed, both by server-side apply.

A write that failed is tried again with what is true then; while the API server is away nothing else
of the agent waits for it. The Node owns the GPUNode, so both go together. At the start the last
status is read back: with a driver that cannot be asked, it is all that is known. Run by the agent.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

from pydantic import ValidationError

from gpu_scheduler.agent.heartbeat import FIELD_MANAGER, node_reference
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.kube import errors, paths

log = logging.getLogger(__name__)

GPUNODES = "gpunodes"
_RETRY_SECONDS = 2.0
_RESYNC_SECONDS = 300.0  # an apply that changes nothing costs nobody anything


class Writer(Protocol):
    """The part of the client that is needed."""

    async def get(self, path: str) -> dict[str, Any]:
        """Read an object."""

    async def apply(self, path: str, body: object, field_manager: str) -> None:
        """Server-side apply."""


class Publisher:
    """Keeps the GPUNode equal to what it was told last."""

    def __init__(
        self, client: Writer, node: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._node, self._clock = client, node, clock
        self._behind_since: float | None = float("-inf")  # None: all is written
        self._wanted: dict[str, Any] | None = None
        self._written: dict[str, Any] | None = None
        self._news = asyncio.Event()
        self._exists = False
        self.node_uid = ""
        """UID of the Node, empty while it is not known."""
        self.writes = 0
        """Statuses written."""

    def publish(self, status: GPUNodeStatus) -> None:
        """This is the status now."""
        self._wanted = status.to_json()
        if self._wanted != self._written:
            if self._behind_since is None:
                self._behind_since = self._clock()
            self._news.set()

    def behind_seconds(self) -> float:
        """For how long the API server has not had what is true; infinite before the first write."""
        return 0.0 if self._behind_since is None else self._clock() - self._behind_since

    async def last(self) -> GPUNodeStatus:
        """The status as the API server has it; an empty one when there is none, or no answer."""
        try:
            found = await self._client.get(self._path())
            return GPUNodeStatus.model_validate(found.get("status") or {})
        except (errors.ApiError, ValidationError) as error:
            if not isinstance(error, errors.NotFound):
                log.warning("GPUNode %s: %s", self._node, error)
            return GPUNodeStatus.model_validate({})

    async def run(self) -> None:
        """Write what changes until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_RESYNC_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                self._written = None  # somebody may have changed or deleted it
            self._news.clear()
            try:
                await self.write()
            except errors.ApiError as error:
                log.warning("GPUNode %s: %s", self._node, error)
                if isinstance(error, errors.NotFound):
                    self._exists = False  # somebody deleted it
                await asyncio.sleep(_RETRY_SECONDS)
                self._news.set()

    async def write(self) -> None:
        """Write the status, and before that the object if need be.

        Raises:
            ApiError: it could not be written.
        """
        wanted = self._wanted
        if wanted is None:
            return
        if wanted == self._written:
            self._behind_since = None  # it became true again before it was written
            return
        if not self._exists:
            await self._create()
        body = {**self._object(), "status": wanted}
        await self._client.apply(self._path("status"), body, FIELD_MANAGER)
        self._written = wanted
        self.writes += 1
        if wanted == self._wanted:
            self._behind_since = None

    async def _create(self) -> None:
        node = await self._client.get(paths.core("nodes", name=self._node))
        self.node_uid = str(node["metadata"]["uid"])
        body = self._object()
        body["metadata"]["ownerReferences"] = [node_reference(self._node, self.node_uid)]
        await self._client.apply(self._path(), body, FIELD_MANAGER)
        self._exists = True

    def _object(self) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": "GPUNode", "metadata": {"name": self._node}}

    def _path(self, subresource: str = "") -> str:
        return paths.of_group(GROUP, VERSION, GPUNODES, name=self._node, subresource=subresource)
