"""The admin port: ``/healthz``, ``/readyz`` and ``/metrics``.

Healthy: the event loop turns. Ready: the replica sees all that it looks at, and a stand-by looks at
nothing. No request changes anything. What names a namespace or a project is shown to who has the
token for scrapes alone, and to nobody where there is none.

The operator's has a thread of its own (``AdminPort``): ``/metrics`` is answered while the main loop
plans, with a text that was made before. Health is the main loop's, and is asked there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from hmac import compare_digest

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry

from gpu_scheduler.web.bounded import ConnectionLimits, Listener
from gpu_scheduler.web.exposition import Exposition, nothing
from gpu_scheduler.web.own_thread import OnLoop, OwnThread, here

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
    ask: OnLoop = here,
) -> web.Application:
    """The application.

    Args:
        registry: what is shown.
        ready: what is missing; empty when nothing is.
        state: what this replica is.
        token: of scrapes that see tenants; empty: there is none.
        look: comes before what is shown is read.
        ask: has something done on the loop where all this may be asked.
    """
    public = Exposition(registry, of_tenants=False, look=look)
    whole = Exposition(registry, look=look)
    starting = asyncio.Semaphore(_A_TURN)

    async def alive() -> str:
        return state()

    async def lacking() -> tuple[str, str]:
        return ready(), state()

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text=f"ok {await ask(alive)}\n")

    async def readyz(request: web.Request) -> web.Response:
        missing, is_now = await ask(lacking)
        return web.Response(text=missing or f"ok {is_now}\n", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.StreamResponse:
        shown = _shows(request.headers.get("Authorization", ""), token())
        of, reader = whole if shown else public, request.remote or ""
        text = of.kept(reader)
        if text is None:
            text = await ask(partial(of.made, reader))
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
    """Start to listen on this loop; close with ``cleanup``."""
    listener = Listener(application, LIMITS)
    await listener.start(host, port)
    return listener


class AdminPort:
    """The port, on a thread of its own; its application asks by ``asking`` this loop."""

    def __init__(self, application: web.Application) -> None:
        """Nothing listens yet."""
        self._listener = Listener(application, LIMITS)
        self._thread = OwnThread("admin")

    async def start(self, host: str, port: int) -> int:
        """Begin to listen; the port, also where 0 was asked for.

        Raises:
            OSError: somebody else listens there.
        """
        self._thread.start()
        try:
            return await self._thread.run(partial(self._listener.start, host, port))
        except OSError:
            await self._thread.end()
            raise

    async def cleanup(self) -> None:
        """Listen no more, and close what is open."""
        await self._thread.run(self._listener.cleanup)
        await self._thread.end()
