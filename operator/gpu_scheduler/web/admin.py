"""The admin port: ``/healthz``, ``/readyz`` and ``/metrics``.

Healthy: the event loop turns. Ready: the replica sees all that it looks at, and a stand-by looks at
nothing. No request changes anything. What names a namespace or a project is shown to who has the
token for scrapes alone, and to nobody where there is none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hmac import compare_digest

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry

from gpu_scheduler.web.bounded import ConnectionLimits, Listener
from gpu_scheduler.web.exposition import Exposition, nothing

LIMITS = ConnectionLimits(connections=512, connections_of_one=256, failures_burst=100.0)
_A_TURN = 16  # of those who waited for a text, these begin to get it in one turn of the loop
_PIECE = 64 << 10  # a reader who is slow holds no more than this of an answer


def app(
    registry: CollectorRegistry,
    *,
    ready: Callable[[], str],
    state: Callable[[], str],
    token: Callable[[], str] = lambda: "",
    look: Callable[[], Awaitable[None]] = nothing,
) -> web.Application:
    """The application.

    Args:
        registry: what is shown.
        ready: what is missing; empty when nothing is.
        state: what this replica is.
        token: of scrapes that see tenants; empty: there is none.
        look: comes before what is shown is read.
    """
    public = Exposition(registry, of_tenants=False, look=look)
    whole = Exposition(registry, look=look)
    starting = asyncio.Semaphore(_A_TURN)

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text=f"ok {state()}\n")

    async def readyz(request: web.Request) -> web.Response:
        missing = ready()
        return web.Response(text=missing or f"ok {state()}\n", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.StreamResponse:
        shown = _shows(request.headers.get("Authorization", ""), token())
        text = await (whole if shown else public).text()
        answer = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE_LATEST})
        answer.content_length = len(text)
        with suppress(ConnectionError):  # they went away, which is nothing to us
            async with starting:
                await answer.prepare(request)
            for begin in range(0, len(text) if request.method == "GET" else 0, _PIECE):
                await answer.write(text[begin : begin + _PIECE])
        return answer

    made = web.Application()
    made.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]
    )
    return made


def _shows(header: str, token: str) -> bool:
    return bool(token) and compare_digest(header.encode(), f"Bearer {token}".encode())


async def serve(application: web.Application, host: str, port: int) -> Listener:
    """Start to listen; close with ``cleanup``."""
    listener = Listener(application, LIMITS)
    await listener.start(host, port)
    return listener
