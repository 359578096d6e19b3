"""The agent's sign of life: the Lease ``gpu-node-<node>``, renewed every few seconds.

Nobody competes for it, and it comes back when it was deleted. Without an API server the agent goes
on with its work and catches up. When the agent ends, nothing is cleaned up: the Lease runs out, and
only then does the node take no new pods, so that an upgrade of the agent is not noticed. There is
none before the operator's first word.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, NoReturn

from gpu_scheduler.agent.own_object import OwnObject, Writer
from gpu_scheduler.agent.settings import AgentSettings
from gpu_scheduler.api.names import AGENT_LEASE_PREFIX, COMPONENT_AGENT, LABEL_COMPONENT
from gpu_scheduler.api.orders import Orders
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.kube.times import micro_timestamp
from gpu_scheduler.kube.unexpected import unexpected

log = logging.getLogger(__name__)


def lease_name(node: str) -> str:
    """Name of a node's Lease."""
    return f"{AGENT_LEASE_PREFIX}{node}"


def lease(node: str, namespace: str, seconds: float, now: datetime, uid: str) -> dict[str, Any]:
    """The Lease as written; with the Node's ``uid`` it is deleted together with the Node."""
    metadata: dict[str, Any] = {
        "name": lease_name(node),
        "namespace": namespace,
        "labels": {LABEL_COMPONENT: COMPONENT_AGENT},
    }
    if uid:
        metadata["ownerReferences"] = [node_reference(node, uid)]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": max(1, round(seconds)),
            "renewTime": micro_timestamp(now),
        },
    }


def node_reference(node: str, uid: str) -> dict[str, Any]:
    """An owner reference to the Node."""
    return {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}


class Heartbeat:
    """Renews the Lease."""

    def __init__(
        self,
        client: Writer,
        settings: AgentSettings,
        *,
        alive: Callable[[], bool] = lambda: True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Begin.

        Args:
            client: To write with.
            settings: The node, the Lease's namespace, how long a renewal holds and how often.
            alive: Whether what the agent reports is true; if not, the Lease must run out.
            now: Wall clock.
            sleep: Waits.
        """
        self._settings = settings
        lease_path = paths.lease(settings.namespace)
        self._own = OwnObject(client, lease_path, lease_name(settings.node))
        self._orders: Orders | None = None
        self._alive = alive
        self._now = now
        self._sleep = sleep

    def take(self, orders: Orders) -> None:
        """What the operator says: whose the Lease is, and which version it sees."""
        self._orders = orders
        self._own.offer(orders.lease_version)

    async def run(self) -> NoReturn:
        """Renew until cancelled."""
        while True:
            try:
                beaten = self._alive() and await self.beat()
            except Exception:
                unexpected("heartbeat", self._settings.node)
                beaten = False
            # Without one soon again: the Lease still lives, it must not run out for this.
            seconds = self._settings.renew_seconds
            await self._sleep(seconds if beaten else seconds / 5)

    async def beat(self) -> bool:
        """Renew once; failures are logged, and answered with False."""
        if self._orders is None:
            return False
        node, namespace = self._settings.node, self._settings.namespace
        seconds = self._settings.lease_seconds
        body = lease(node, namespace, seconds, self._now(), self._orders.node_uid)
        if not self._own.version:
            self._own.offer(self._orders.lease_version)
        write = self._own.replace if self._own.version else self._own.create
        try:
            await write(body, self._settings.renew_seconds / 2)
        except errors.ApiError as error:
            log.warning("heartbeat: %s", error)
            return False
        return True
