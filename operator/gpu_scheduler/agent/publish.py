"""Writes GPUNode: the object once, its status when it changed or somebody else changed it.

A write that failed is tried again with what is true then; while the API server is away nothing else
of the agent waits for it. The Node owns the GPUNode, so both go together. The operator tells which
version it sees, so that a GPUNode that was deleted or overwritten is written again at once. Nothing
is written before the operator's first word.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from gpu_scheduler.agent.heartbeat import node_reference
from gpu_scheduler.agent.own_object import OwnObject, Writer
from gpu_scheduler.api.gpunode import GPUNodeStatus
from gpu_scheduler.api.names import API_VERSION, GROUP, VERSION
from gpu_scheduler.api.orders import Orders
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)

GPUNODES = "gpunodes"
_RETRY_SECONDS = 2.0
_ANSWER_SECONDS = 10.0


class Publisher:
    """Keeps the GPUNode equal to what it was told last."""

    def __init__(
        self, client: Writer, node: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._node = node
        self._clock = clock
        self._own = OwnObject(client, paths.of_group(GROUP, VERSION, GPUNODES), node)
        self._orders: Orders | None = None
        self._behind_since: float | None = float("-inf")  # None: all is written
        self._wanted: dict[str, Any] | None = None
        self._written: dict[str, Any] | None = None
        self._news = asyncio.Event()

    def take(self, orders: Orders) -> None:
        """What the operator says: whose the GPUNode is, and which version it sees."""
        self._orders = orders
        at = orders.gpu_node
        gone = at is None and bool(self._own.version)
        if gone:
            self._own.forget()
        if gone or (at is not None and self._own.offer(at.version)):
            log.warning("GPUNode %s: somebody else has written or deleted it", self._node)
            self._written = None
        if self._wanted is not None and self._wanted != self._written:
            self._fall_behind()

    def publish(self, status: GPUNodeStatus) -> None:
        """This is the status now."""
        self._wanted = status.to_json()
        if self._wanted != self._written:
            self._fall_behind()

    def behind_seconds(self) -> float:
        """For how long the API server has not had what is true; infinite before the first write."""
        return 0.0 if self._behind_since is None else self._clock() - self._behind_since

    async def last(self) -> GPUNodeStatus:
        """The status as the API server has it; an empty one when there is none, or no answer.

        A replacement that is only tried: its answer shows the object with the status that it has.
        """
        if not self._own.version:
            return GPUNodeStatus.model_validate({})
        try:
            found = await self._own.replace(self._object(), _ANSWER_SECONDS, dry_run=True)
            return GPUNodeStatus.model_validate(found.get("status") or {})
        except (errors.ApiError, ValidationError) as error:
            log.warning("GPUNode %s: %s", self._node, error)
            return GPUNodeStatus.model_validate({})

    async def run(self) -> None:
        """Write what changes until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self.write()
                continue
            except errors.ApiError as error:
                log.warning("GPUNode %s: %s", self._node, error)
            except Exception:
                unexpected("publisher", self._node)
            await asyncio.sleep(_RETRY_SECONDS)
            self._news.set()

    async def write(self) -> None:
        """Write the status, and before that the object if need be.

        Raises:
            ApiError: it could not be written.
        """
        wanted = self._wanted
        if wanted is None or self._orders is None:
            return
        if wanted == self._written:
            self._behind_since = None  # it became true again before it was written
            return
        if not self._own.version and self._orders.gpu_node is not None:
            self._own.offer(self._orders.gpu_node.version)
        if not self._own.version:
            await self._create(self._orders)
        body = {**self._object(), "status": wanted}
        try:
            await self._own.replace(body, _ANSWER_SECONDS, subresource="status")
        except errors.NotFound:  # somebody deleted it
            await self._create(self._orders)
            await self._own.replace(body, _ANSWER_SECONDS, subresource="status")
        self._written = wanted
        if wanted == self._wanted:
            self._behind_since = None

    def _fall_behind(self) -> None:
        if self._behind_since is None:
            self._behind_since = self._clock()
        self._news.set()

    async def _create(self, orders: Orders) -> None:
        body = self._object()
        if orders.node_uid:
            body["metadata"]["ownerReferences"] = [node_reference(self._node, orders.node_uid)]
        await self._own.create(body, _ANSWER_SECONDS)

    def _object(self) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": "GPUNode", "metadata": {"name": self._node}}
