"""``GET /usage?since=LOOK`` at the agent's port: what the node's GPUs do, for the leader alone.

Who asks shows the key whose digest stands in the orders (``usage.key``). Nobody else learns more
than that: names of tenants' work are in it.
"""

import time
from collections.abc import Callable

from aiohttp import web

from gpu_scheduler.agent.history.answering import Answering
from gpu_scheduler.usage.answer import dumps
from gpu_scheduler.usage.key import may_ask

PATH = "/usage"


def route(
    digest: Callable[[], str],
    answering: Callable[[], Answering | None],
    clock: Callable[[], float] = time.monotonic,
) -> web.RouteDef:
    """Where it is answered.

    Args:
        digest: of the key, as the operator said last.
        answering: None where no history is kept.
        clock: monotonic seconds.
    """

    async def usage(request: web.Request) -> web.Response:
        if not may_ask(request.headers.get("Authorization", ""), digest()):
            return web.Response(status=401, headers={"WWW-Authenticate": "Bearer"})
        found = answering()
        missing = "no history is kept here" if found is None else found.missing(clock())
        if found is None or missing:
            return web.Response(status=503, text=f"{missing}\n")
        since = request.query.get("since", "")
        known = int(since) if since.isascii() and since.isdigit() and len(since) < 12 else 0
        body = dumps(found.answer(known))
        return web.Response(body=body, content_type="application/msgpack")

    return web.get(PATH, usage)
