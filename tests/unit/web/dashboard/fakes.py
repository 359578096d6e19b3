"""An API server's reviews, a page, and a dashboard that is served: for the tests beside this."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gpu_scheduler.dashboard.pages import Page
from gpu_scheduler.dashboard.picture import Picture
from gpu_scheduler.dashboard.question import BadQuestionError, RequestParameters
from gpu_scheduler.dashboard.rows import Lead, View
from gpu_scheduler.dashboard.views import WhatIfAnswer, WhatIfQuestion, WhatIfRow
from gpu_scheduler.dashboard.visible import Visible
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.clock import Clock
from gpu_scheduler.kube.connection import Connection
from gpu_scheduler.kube.paths import TOKEN_REVIEWS
from gpu_scheduler.web.dashboard.access import Access, Reader
from gpu_scheduler.web.dashboard.app import DashboardParts, app
from gpu_scheduler.web.dashboard.assets import Assets
from gpu_scheduler.web.dashboard.own_token import OwnToken
from gpu_scheduler.web.dashboard.stream import StreamLimits

HttpClient = TestClient[web.Request, web.Application]
NAMESPACES = frozenset({"team-a", "team-b", "team-c"})


class Time:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class ApiServer:
    """In the place of a client: knows tokens and who may list what."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}  # users by token
        self.rights: set[tuple[str, str]] = set()  # user; a namespace, or *resource for all
        self.away = False
        self.asked: list[tuple[str, str]] = []  # "token" and the token; user and what
        self.sent: list[tuple[str, str, dict[str, Any]]] = []  # by users' own tokens
        self.refuses: errors.ApiError | None = None
        self.log = b"a line\n"
        self.connection = Connection("https://api.test")

    def user(self, name: str, *may: str) -> str:
        """One more user, and their token."""
        self.tokens[f"token-of-{name}"] = name
        self.rights |= {(name, each) for each in may}
        return f"token-of-{name}"

    async def create(
        self, path: str, body: dict[str, Any], type: type[Any], *, retry: bool
    ) -> object:
        await asyncio.sleep(0)
        if self.away:
            raise errors.Unavailable(message=f"POST {path}: {body}")
        spec = body["spec"]
        if path == TOKEN_REVIEWS:
            self.asked.append(("token", spec["token"]))
            user = self.tokens.get(spec["token"])
            status = {"authenticated": user is not None, "user": {"username": user or ""}}
            return msgspec.convert({"status": status}, type)
        asked = spec["resourceAttributes"]
        what = asked.get("namespace") or f"*{asked['resource']}"
        assert (asked["verb"], asked["group"]) == ("list", "gpu-scheduler.io")
        self.asked.append((spec["user"], what))
        return msgspec.convert({"status": {"allowed": (spec["user"], what) in self.rights}}, type)

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        await asyncio.sleep(0)
        self.sent.append((method, path, options))
        if self.refuses is not None:
            raise self.refuses
        return self.log if method == "GET" else b"{}"

    def count(self, who: str) -> int:
        return sum(user == who for user, _ in self.asked)


class SeenView(View, frozen=True, kw_only=True):
    """A view of what a reader may see."""

    at: float
    namespaces: tuple[str, ...] | None
    inventory: bool
    works: tuple[str, ...]
    asked: dict[str, str]


@dataclass
class Works:
    """A page that shows all work of the readers' namespaces, and how often it was made."""

    names: list[str] = field(default_factory=lambda: [f"{n}/secret-of-{n}" for n in NAMESPACES])
    made: int = 0
    fails: Exception | None = None

    def page(self, picture: Picture, visible: Visible, asked: RequestParameters) -> SeenView | None:
        self.made += 1
        if self.fails:
            raise self.fails
        if asked.get("limit") == "x":
            raise BadQuestionError("limit: 'x' is no number")
        if "namespace" in asked and not visible.sees(asked["namespace"]):
            return None
        shown = visible.namespaces
        return SeenView(
            at=picture.at,
            namespaces=None if shown is None else tuple(sorted(shown)),
            inventory=visible.inventory,
            works=tuple(
                name for name in sorted(self.names) if visible.sees(name.partition("/")[0])
            ),
            asked=dict(asked),
        )


@dataclass
class Scene:
    """A dashboard without a port, and all that it is made of."""

    api: ApiServer = field(default_factory=ApiServer)
    works: Works = field(default_factory=Works)
    time: Time = field(default_factory=Time)
    picture: Picture | None = field(default_factory=lambda: Picture(at=5.0, idle_seconds=3600))
    namespaces: frozenset[str] = NAMESPACES
    actions: bool = True
    assets: Assets = field(default_factory=lambda: Assets({}))
    limits: StreamLimits = field(default_factory=lambda: StreamLimits(period_seconds=0.01))
    asked_what_if: list[Visible] = field(default_factory=list)
    pages: Sequence[Page] | None = None
    pictures: int = 0  # that were asked for

    def __post_init__(self) -> None:
        clock = Clock(self.time, self.time)
        api: Any = self.api
        self.access = Access(api, lambda: self.namespaces, clock, Random(1))
        page = self.works.page
        table = self.pages or (Page("queue", page), Page("jobs/{namespace}/{kind}/{name}", page))
        self.parts = DashboardParts(
            pages=table,
            leads=lambda: self.picture is not None,
            picture=self.current,
            access=self.access,
            clock=self.time,
            own_token=OwnToken(api, self.time),
            what_if=self.what_if,
            actions=self.actions,
            assets=self.assets,
            streams=self.limits,
        )

    async def current(self) -> Picture | None:
        self.pictures += 1
        return self.picture

    async def what_if(
        self, question: WhatIfQuestion, reader: Reader, visible: Visible
    ) -> WhatIfAnswer:
        self.asked_what_if.append(visible)
        rows = tuple(
            WhatIfRow(name=name, result="starts now", message="", pods=1)
            for name in sorted(self.works.names)
            if visible.sees(name.partition("/")[0])
        )
        return WhatIfAnswer(lead=Lead(first=()), rows=rows, omitted=0)

    def later(self) -> None:
        """Another picture."""
        assert self.picture is not None
        self.picture = replace(self.picture, at=self.picture.at + 1)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[HttpClient]:
        async with TestClient(TestServer(app(self.parts))) as client:
            yield client


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", **more}


def posting(client: HttpClient, token: str, **more: str) -> dict[str, str]:
    """Headers of a POST by our own page."""
    url = client.make_url("/")
    return bearer(token, **{"Origin": f"http://{url.host}:{url.port}", **more})


@dataclass
class Event:
    """Of a stream."""

    name: str
    data: Any


async def events(content: Any) -> AsyncIterator[Event]:
    """Those of an answer, until it ends."""
    name, data = "", ""
    async for raw in content:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
        elif not line and name:
            yield Event(name, msgspec.json.decode(data))
            name = data = ""
