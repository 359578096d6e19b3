"""kopf handlers of our custom resources: ``on.event`` only, which writes nothing to the object.

kopf's finalizers, annotations, events and peering stay off: a GPUJob is cleaned up by its owner
references, and leadership is the Lease's. kopf has to run last, because on its way out it cancels
every task that was created after it started.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import kopf

from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.controllers.session import KopfTransport, Listed
from gpu_scheduler.kube.transport import Transport
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.informers.custom_resources import (
    GPUCLASSES,
    GPUJOBS,
    GPUNODES,
    GPUPROJECTS,
    CustomResources,
)

_DELETED = "DELETED"
_READ = ("spec", "status")


def listen(
    custom_resources: CustomResources,
    transport: Transport,
    *,
    ready: asyncio.Event,
    stop: asyncio.Event,
    listed: Listed,
) -> Coroutine[Any, Any, None]:
    """Everything that kopf does for us, until ``stop`` is set; ``listed``: see ``KopfTransport``.

    Once ``ready`` is set, kopf has put its own signal handlers in place of the process'.
    """
    return kopf.operator(
        registry=registry(custom_resources, transport, listed),
        settings=settings(),
        clusterwide=True,
        standalone=True,
        # Without one kopf asks for the user's name, and a container's user need not have any.
        identity=cast("Any", "gpu-scheduler"),
        ready_flag=ready,
        stop_flag=stop,
    )


def settings() -> kopf.OperatorSettings:
    """Settings of kopf for an operator that only listens.

    The server ends each watch before its silence could mean that it is gone, which the session
    finds out; kopf's own clock for that also runs while the session waits as it was asked to.
    """
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True  # see ``discovery``
    chosen.watching.server_timeout = 50
    chosen.watching.inactivity_timeout = 600
    chosen.watching.chunk_size = 500
    chosen.queueing.exit_timeout = 0.1  # news that are not taken in are listed by the next leader
    chosen.persistence.diffbase_storage = _NoDifferences()
    return chosen


class _NoDifferences(kopf.DiffBaseStorage):
    """Spares kopf two copies of each object, for handlers of differences that are not there."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        raise AssertionError("nothing is stored in objects")


def registry(
    custom_resources: CustomResources,
    transport: Transport,
    listed: Listed,
) -> kopf.OperatorRegistry:
    """Handlers that pass every event on to ``intake``.

    All of them are async although none waits: kopf runs other functions in threads, and the state
    and the queues that ``intake`` changes belong to the event loop.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    async def login(**_: Any) -> kopf.AiohttpSession:
        session = cast("Any", KopfTransport(transport, listed))
        return kopf.AiohttpSession(server=transport.connection.server, aiohttp_session=session)

    def listen_to(plural: str, changed: Callable[[Any], None], gone: Callable[..., None]) -> None:
        @kopf.on.event(GROUP, VERSION, plural, id=plural, registry=handlers)
        async def told(event: kopf.RawEvent, **_: Any) -> None:
            raw, place = cast("dict[str, Any]", event["object"]), [""]
            try:
                meta = raw["metadata"]
                place = [meta["namespace"]] if plural == GPUJOBS else []
                place.append(meta["name"])
                if event["type"] == _DELETED:
                    gone(*place, meta["uid"])
                else:
                    changed(raw)
            except Exception:  # of ours; kopf would log it, and nobody would count it
                unexpected("kopf", "/".join([plural, *place]))
            finally:  # kopf holds the event until it has heard nothing of the object for a while
                for part in _READ:
                    raw.pop(part, None)

    listen_to(GPUJOBS, custom_resources.gpujob, custom_resources.gpujob_gone)
    listen_to(GPUPROJECTS, custom_resources.project, custom_resources.project_gone)
    listen_to(GPUNODES, custom_resources.node, custom_resources.node_gone)
    listen_to(GPUCLASSES, custom_resources.gpuclass, custom_resources.gpuclass_gone)
    return handlers
