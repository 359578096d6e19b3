"""A client whose answers a test scripts: what was asked is recorded, nothing is sent."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import orjson

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.watches import Watches

T = TypeVar("T")
Reply = Callable[["Sent"], Any]


@dataclass(frozen=True, slots=True)
class Sent:
    method: str
    path: str
    body: Any
    params: Any = None


class FakeClient:
    """Answers each request by ``reply``: a value, or an exception that it returns or raises."""

    def __init__(self, reply: Reply = lambda sent: {}) -> None:
        self.reply = reply
        self.sent: list[Sent] = []
        self.requests: dict[tuple[str, str], int] = {}
        self.unstreamed: Container[str] = _Everything()
        self.watches = Watches()

    def of(self, method: str, ending: str = "") -> list[Sent]:
        return [s for s in self.sent if s.method == method and s.path.endswith(ending)]

    async def _ask(self, method: str, path: str, body: Any = None, params: Any = None) -> Any:
        sent = Sent(method, path, body, params)
        self.sent.append(sent)
        answer = self.reply(sent)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def request(self, method: str, path: str, *, body: bytes = b"", **_: Any) -> bytes:
        answer = await self._ask(method, path, orjson.loads(body) if body else None)
        return orjson.dumps({} if answer is None else answer)

    async def get(
        self,
        path: str,
        type: type[T] | None = None,
        *,
        timeout_seconds: float | None = None,
        **params: Any,
    ) -> Any:
        return _typed(await self._ask("GET", path, params=params), type)

    async def create(
        self,
        path: str,
        body: Any,
        type: type[T] | None = None,
        *,
        dry_run: bool = False,
        **options: Any,
    ) -> Any:
        return _typed(await self._ask("DRYRUN" if dry_run else "POST", path, body), type)

    async def replace(self, path: str, body: Any, type: type[T] | None = None) -> Any:
        return _typed(await self._ask("PUT", path, body), type)

    async def merge_patch(self, path: str, body: Any, type: type[T] | None = None) -> Any:
        return _typed(await self._ask("PATCH", path, body), type)

    async def delete(self, path: str, **options: Any) -> None:
        await self._ask("DELETE", path, options)


def _typed(answer: Any, wanted: type[T] | None) -> Any:
    if wanted is None or isinstance(answer, wanted):
        return answer
    if isinstance(answer, dict):  # with what stays JSON, too
        return msgspec.json.decode(orjson.dumps(answer), type=wanted)
    return msgspec.convert(answer, wanted, from_attributes=True)


class _Everything:
    def __contains__(self, path: object) -> bool:
        return True


CONFLICT = errors.Conflict(409, "Conflict", "told so")
NOT_FOUND = errors.NotFound(404, "NotFound", "told so")
UNPROCESSABLE = errors.Unprocessable(422, "Invalid", "told so")
BUSY = errors.TooManyRequests(429, "TooManyRequests", "a disruption budget says no")
AWAY = errors.Unavailable(message="no answer in time", maybe_applied=True)
BROKEN = errors.ServerError(500, "InternalError", "told so", maybe_applied=True)
NOT_LEADER = errors.NotLeader(message="the fence is closed")


class FakeTerm:
    """A leader's term that is known, and how often somebody doubted it."""

    def __init__(self) -> None:
        self.text = "me/1"
        self.doubts = 0

    def doubt(self) -> None:
        self.doubts += 1
