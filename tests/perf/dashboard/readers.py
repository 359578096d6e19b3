"""Who reads the dashboard: accounts of a real API server, their open pages, their what-ifs.

Each account may see ten namespaces of its own choice, every second one the nodes and projects too.
What comes is counted and not looked at: that is the work of browsers, elsewhere.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from tests.perf.install import RELEASE
from tests.perf.queue_load import apply
from tests.perf.signals.load import namespace_of
from tests.perf.signals.nodes import node_name
from tests.perf.signals.size import Size

from gpu_scheduler.api.names import GROUP
from gpu_scheduler.kube.client import Client

NAMESPACES_EACH = 10
_PAGES = ("/overview", "/gpus", "/queue", "/jobs", "/projects")
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_HOURS = 12
_AGAIN_SECONDS = 0.5
_WHAT_IF_SECONDS = 120.0


class _Token(msgspec.Struct, frozen=True):
    token: str


class _TokenRequest(msgspec.Struct, frozen=True):
    status: _Token


async def tokens(client: Client, count: int, size: Size) -> list[str]:
    """Of as many accounts, made with their rights."""
    roles = {
        "bench-jobs": ["gpujobs"],
        "bench-inventory": ["gpunodes", "gpuprojects"],
    }
    await apply(client, [(f"{_RBAC}/clusterroles", _role(*each)) for each in roles.items()])
    bindings = []
    for number in range(count):
        for step in range(min(NAMESPACES_EACH, size.namespaces)):
            namespace = namespace_of(number * 7 + step * 13, size)
            path = f"{_RBAC}/namespaces/{namespace}/rolebindings"
            bindings.append((path, _binding("bench-jobs", f"reads-{number}-{step}", number)))
        if number % 2:
            path = f"{_RBAC}/clusterrolebindings"
            bindings.append((path, _binding("bench-inventory", f"reads-{number}", number)))
    accounts = f"/api/v1/namespaces/{RELEASE}/serviceaccounts"
    await apply(
        client, [(accounts, {"metadata": {"name": _account(number)}}) for number in range(count)]
    )
    await apply(client, bindings)
    found = []
    for number in range(count):
        body = {"spec": {"expirationSeconds": _HOURS * 3600}}
        said = await client.create(f"{accounts}/{_account(number)}/token", body, _TokenRequest)
        found.append(said.status.token)
    return found


def _account(number: int) -> str:
    return f"reader-{number}"


def _role(name: str, resources: list[str]) -> dict[str, Any]:
    rule = {"apiGroups": [GROUP], "resources": resources, "verbs": ["list"]}
    return {"metadata": {"name": name}, "rules": [rule]}


def _binding(role: str, name: str, number: int) -> dict[str, Any]:
    account = {"kind": "ServiceAccount", "name": _account(number), "namespace": RELEASE}
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [account],
    }


@dataclass(slots=True)
class ReaderCounts:
    """What readers were sent, since the last ``take``."""

    views: int = 0
    bytes: int = 0
    ended: Counter[str] = field(default_factory=Counter)  # streams, by how
    answers: Counter[str] = field(default_factory=Counter)  # what-ifs, by status
    seconds: list[float] = field(default_factory=list)  # of what-ifs that were answered
    open: int = 0

    @property
    def answered(self) -> bool:
        """Whether anybody was there to answer."""
        return bool(self.open or any(each.isdigit() for each in self.answers))

    def take(self) -> "ReaderCounts":
        """What was counted; a new count begins."""
        taken = ReaderCounts(
            self.views, self.bytes, self.ended, self.answers, self.seconds, self.open
        )
        self.views = self.bytes = 0
        self.ended, self.answers, self.seconds = Counter(), Counter(), []
        return taken


@asynccontextmanager
async def reading(port: int, tokens: list[str], seen: ReaderCounts) -> AsyncIterator[None]:
    """A page of each token stays open, whatever happens."""
    async with _session(port) as session:
        pages = [_page(session, token, number, seen) for number, token in enumerate(tokens)]
        async with _together(pages):
            yield


@asynccontextmanager
async def asking(port: int, tokens: list[str], seen: ReaderCounts) -> AsyncIterator[None]:
    """Each token asks what would be with one more node, again and again."""
    async with _session(port) as session, _together([_asks(session, t, seen) for t in tokens]):
        yield


def _session(port: int) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        f"http://127.0.0.1:{port}",
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    )


@asynccontextmanager
async def _together(work: list[Any]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _page(
    session: aiohttp.ClientSession, token: str, number: int, seen: ReaderCounts
) -> None:
    page = _PAGES[number % len(_PAGES)]
    while True:
        try:
            async with session.get(
                "/api/v1/stream",
                params={"view": page},
                headers={"Authorization": f"Bearer {token}"},
            ) as answer:
                if answer.status == 200:
                    await _events(answer, seen)
                else:
                    seen.ended[str(answer.status)] += 1
        except (aiohttp.ClientError, OSError) as error:
            seen.ended[type(error).__name__] += 1
        await asyncio.sleep(_AGAIN_SECONDS)


async def _events(answer: aiohttp.ClientResponse, seen: ReaderCounts) -> None:
    seen.open += 1
    try:
        async for chunk in answer.content.iter_any():
            seen.views += chunk.count(b"event: view\n")
            seen.bytes += len(chunk)
            if b"event: end\n" in chunk:
                seen.ended[chunk.partition(b"data: ")[2].decode().strip()[:120]] += 1
    finally:
        seen.open -= 1


async def _asks(session: aiohttp.ClientSession, token: str, seen: ReaderCounts) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["Sec-Fetch-Site"] = "same-origin"
    headers["Origin"] = str(session._base_url).rstrip("/")
    question = json.dumps({"likeNode": node_name(0), "nodes": 1})
    while True:
        began = time.monotonic()
        try:
            async with asyncio.timeout(_WHAT_IF_SECONDS):
                async with session.post("/api/v1/what-if", data=question, headers=headers) as said:
                    text = await said.text()
            seen.answers[str(said.status)] += 1
            if said.status == 200:
                seen.seconds.append(time.monotonic() - began)
            elif said.status not in (503, 429):
                seen.answers[text[:80]] += 1
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            seen.answers[type(error).__name__] += 1
        await asyncio.sleep(_AGAIN_SECONDS)
