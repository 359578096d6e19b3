"""The dashboard's addresses: views, live views, three actions by the user's own rights, the page.

Every address below /api is registered by ``_read`` or ``_change``, which give the handler somebody
whom the API server knows, or answer by themselves: without a good token there is no content. Files
of the front end are the same for all and need none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from gpu_scheduler import __version__
from gpu_scheduler.dashboard.pages import Page
from gpu_scheduler.dashboard.question import number
from gpu_scheduler.dashboard.views import Me, WhatIfAnswer, WhatIfQuestion
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.web.dashboard import origin
from gpu_scheduler.web.dashboard.access import Access, Reader, token_of
from gpu_scheduler.web.dashboard.answers import JSON, RefusedAnswer, json, strict, told
from gpu_scheduler.web.dashboard.assets import Assets, takes_gzip
from gpu_scheduler.web.dashboard.encoded import EncodedViews
from gpu_scheduler.web.dashboard.own_token import MOST_LINES, OwnToken
from gpu_scheduler.web.dashboard.questions import Questions
from gpu_scheduler.web.dashboard.stream import NOTHING, STANDBY, Source, StreamLimits, Streams

API = "/api/v1"
MOST_BODY_BYTES = 128 << 10
_BODY_SECONDS = 5.0
_LINES = 200  # of a log, where nothing is said

STREAMS = web.AppKey("streams", Streams)
"""Those that are open."""
WhatIfHandler = Callable[[WhatIfQuestion, Reader, Visible], Awaitable[WhatIfAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardParts:
    """What the dashboard is made of.

    Attributes:
        pages: the table of views.
        leads: whether this replica leads, which costs nothing to ask.
        picture: of the cluster; None: this replica does not lead.
        access: who asks, and what they may see.
        clock: monotonic seconds.
        own_token: sends what users do by their own rights.
        what_if: plans with a change.
        actions: whether jobs may be suspended and resumed from here.
        assets: the built front end.
        streams: their bounds.
    """

    pages: Sequence[Page]
    leads: Callable[[], bool]
    picture: Source
    access: Access
    clock: Callable[[], float]
    own_token: OwnToken
    what_if: WhatIfHandler
    actions: bool
    assets: Assets
    streams: StreamLimits


_Handler = Callable[[web.Request, Reader], Awaitable[web.StreamResponse]]


def app(parts: DashboardParts) -> web.Application:
    """The application; its cleanup ends what it has begun."""
    views = EncodedViews()
    handlers = _Handlers(parts, views)
    made = web.Application(client_max_size=MOST_BODY_BYTES)
    made.on_response_prepare.append(strict)
    made[STREAMS] = handlers.streams

    async def close(application: web.Application) -> None:
        parts.access.close()
        views.close()

    made.on_cleanup.append(close)
    made.add_routes(
        [
            *(
                web.get(f"{API}/{page.path.lstrip('/')}", _read(parts, handlers.view))
                for page in parts.pages
            ),
            web.get(f"{API}/me", _read(parts, handlers.me)),
            web.get(f"{API}/stream", _read(parts, handlers.stream), allow_head=False),
            web.get(
                f"{API}/logs/{{namespace}}/{{pod}}", _read(parts, handlers.logs), allow_head=False
            ),
            web.post(f"{API}/what-if", _change(parts, handlers.what_if)),
            web.post(f"{API}/jobs/{{namespace}}/{{name}}/suspend", _change(parts, handlers.act)),
            web.post(f"{API}/jobs/{{namespace}}/{{name}}/resume", _change(parts, handlers.act)),
            web.route("*", "/api{rest:(/.*)?}", _read(parts, handlers.nothing)),
            web.get("/{path:.*}", told(handlers.asset)),
        ]
    )
    return made


def _read(parts: DashboardParts, handler: _Handler) -> Handler:
    """An address that changes nothing."""

    async def answer(request: web.Request) -> web.StreamResponse:
        origin.check_read(request.headers)
        return await handler(request, await _reader(parts, request))

    return told(answer)


def _change(parts: DashboardParts, handler: _Handler) -> Handler:
    """An address that is posted to."""

    async def answer(request: web.Request) -> web.StreamResponse:
        reader = await _reader(parts, request)
        origin.check_change(request.headers, request.content_type)
        return await handler(request, reader)

    return told(answer)


async def _reader(parts: DashboardParts, request: web.Request) -> Reader:
    """Whom the API server knows; nothing is looked at for anybody else."""
    token = token_of(request)
    if not parts.leads():
        raise STANDBY  # before the API server is asked: a stand-by asks nothing
    return await parts.access.reader(token, request.remote or "")


class _Handlers:
    """What is answered to somebody who is known."""

    def __init__(self, parts: DashboardParts, views: EncodedViews) -> None:
        self._parts = parts
        self._views = views
        self._questions = Questions(parts.pages)
        self.streams = Streams(parts.access, views, parts.picture, parts.clock, parts.streams)

    async def view(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        question = self._questions.read(request.path_qs.removeprefix(API))
        visible = await self._parts.access.visible(reader, question.namespaces)
        picture = await self._parts.picture()
        if picture is None:
            raise STANDBY
        view = await self._views.view(picture, question, visible)
        if view is None:
            raise NOTHING
        headers = {"ETag": view.etag, "Vary": "Authorization, Accept-Encoding"}
        if view.etag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        body = view.body
        if takes_gzip(request):
            headers["Content-Encoding"] = "gzip"
            body = await self._views.zipped(view)
        return web.Response(body=body, headers=headers, content_type=JSON)

    async def me(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        visible = await self._parts.access.visible(reader)
        return json(
            Me(
                user=reader.who.user,
                all=visible.all,
                namespaces=tuple(sorted(visible.namespaces or ())),
                actions=self._parts.actions,
                version=__version__,
            )
        )

    async def stream(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        question = self._questions.read(request.query.get("view", ""))
        return await self.streams.answer(request, reader, question)

    async def logs(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        asked, at = request.query, request.match_info
        params: dict[str, str | int | bool] = {
            "tailLines": number(asked, "lines", _LINES, MOST_LINES)
        }
        if container := asked.get("container", ""):
            params["container"] = container[:253]
        if asked.get("previous"):
            params["previous"] = True
        text = await self._parts.own_token.logs(reader, at["namespace"], at["pod"], params)
        return web.Response(body=text, content_type="text/plain", charset="utf-8")

    async def what_if(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                question = msgspec.json.decode(await request.read(), type=WhatIfQuestion)
        except TimeoutError:
            raise RefusedAnswer(408, f"no body within {_BODY_SECONDS:g} s") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedAnswer(400, f"this is no question: {error}"[:300]) from None
        visible = await self._parts.access.visible(reader)
        return json(await self._parts.what_if(question, reader, visible))

    async def act(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        if not self._parts.actions:
            raise RefusedAnswer(403, "actions are off here (the chart's value dashboard.actions)")
        at, suspend = request.match_info, request.path.endswith("/suspend")
        await self._parts.own_token.set_suspended(reader, at["namespace"], at["name"], suspend)
        return web.Response(status=204)

    async def nothing(self, request: web.Request, reader: Reader) -> web.StreamResponse:
        raise NOTHING

    async def asset(self, request: web.Request) -> web.StreamResponse:
        return self._parts.assets.answer(request)
