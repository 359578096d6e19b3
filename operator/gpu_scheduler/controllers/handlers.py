"""kopf handlers of our custom resources: ``on.event`` only, which writes nothing to the object.

kopf's finalizers, annotations, events and peering stay off: a GPUJob is cleaned up by its owner
references, and leadership is the Lease's. Called by main, which runs kopf last, because kopf on its
way out cancels every task that was created after it started.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import kopf

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.kube.config import Connection
from gpu_scheduler.runtime.intake import GPUCLASSES, GPUJOBS, GPUNODES, GPUPROJECTS, Intake

_DELETED = "DELETED"


def listen(
    intake: Intake, connection: Connection, *, ready: asyncio.Event, stop: asyncio.Event
) -> Coroutine[Any, Any, None]:
    """Everything that kopf does for us, until ``stop`` is set.

    Once ``ready`` is set, kopf has put its own signal handlers in place of the process'.
    """
    return kopf.operator(
        registry=registry(intake, connection),
        settings=settings(),
        clusterwide=True,
        standalone=True,
        # Without one kopf asks for the user's name, and a container's user need not have any.
        identity=cast("Any", "gpu-scheduler"),
        ready_flag=ready,
        stop_flag=stop,
    )


def settings() -> kopf.OperatorSettings:
    """Settings of kopf for an operator that only listens."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.watching.server_timeout = 300
    chosen.watching.inactivity_timeout = 330
    chosen.networking.request_timeout = 330
    return chosen


def registry(intake: Intake, connection: Connection) -> kopf.OperatorRegistry:
    """Handlers that pass every event on to ``intake``.

    All of them are async although none waits: kopf runs other functions in threads, and the state
    and the queues that ``intake`` changes belong to the event loop.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return connection_info(connection)

    @kopf.on.event(GROUP, VERSION, GPUJOBS, registry=handlers)
    async def gpujob(event: kopf.RawEvent, body: kopf.Body, **_: Any) -> None:
        raw = event["object"]
        if event["type"] == _DELETED:
            meta = raw["metadata"]
            intake.gpujob_gone(meta["namespace"], meta["name"], meta["uid"])
        else:
            intake.gpujob(raw)

    @kopf.on.event(GROUP, VERSION, GPUPROJECTS, registry=handlers)
    async def project(event: kopf.RawEvent, **_: Any) -> None:
        raw = event["object"]
        if event["type"] == _DELETED:
            intake.project_gone(raw["metadata"]["name"], raw["metadata"]["uid"])
        else:
            intake.project(raw)

    @kopf.on.event(GROUP, VERSION, GPUNODES, registry=handlers)
    async def node(event: kopf.RawEvent, **_: Any) -> None:
        raw = event["object"]
        if event["type"] == _DELETED:
            intake.node_gone(raw["metadata"]["name"], raw["metadata"]["uid"])
        else:
            intake.node(raw)

    @kopf.on.event(GROUP, VERSION, GPUCLASSES, registry=handlers)
    async def gpuclass(event: kopf.RawEvent, **_: Any) -> None:
        raw = event["object"]
        if event["type"] == _DELETED:
            intake.gpuclass_gone(raw["metadata"]["name"], raw["metadata"]["uid"])
        else:
            intake.gpuclass(raw)

    return handlers


def connection_info(connection: Connection) -> kopf.ConnectionInfo:
    """Our connection in kopf's words."""
    token = connection.token
    if connection.token_file is not None:
        token = connection.token_file.read_text().strip()
    return kopf.ConnectionInfo(
        server=connection.server,
        ca_data=connection.ca_pem or None,
        insecure=not connection.verify,
        token=token or None,
        scheme="Bearer" if token else None,
        certificate_data=connection.certificate_pem or None,
        private_key_data=connection.key_pem or None,
    )
