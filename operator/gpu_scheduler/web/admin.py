"""The admin port: ``/healthz``, ``/readyz`` and ``/metrics``.

Healthy: the event loop turns. Ready: the replica leads, or stands by to lead. No request changes
anything, and nothing here shows a tenant's objects.
"""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


def app(
    registry: CollectorRegistry, *, ready: Callable[[], str], state: Callable[[], str]
) -> web.Application:
    """The application; ``ready`` says what is missing, empty when nothing is."""

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text=f"ok {state()}\n")

    async def readyz(request: web.Request) -> web.Response:
        missing = ready()
        return web.Response(text=missing or f"ok {state()}\n", status=503 if missing else 200)

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    made = web.Application()
    made.add_routes(
        [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]
    )
    return made


async def serve(application: web.Application, host: str, port: int) -> web.AppRunner:
    """Start to listen; close with ``cleanup``."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner
