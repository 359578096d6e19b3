"""Who asked for what, from the API server's audit log: the check on what the metric cannot say.

Benchmarks use it for one run of each variant on a cluster of its own, since logging each request
costs time; attacks, for what the operator asks for.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec
from tests.perf.writes import LEFT_OUT

_WRITES = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_SERVICE_ACCOUNT = "system:serviceaccount:"
_HARNESS = "bench-harness"


class User(msgspec.Struct, frozen=True):
    """Whose request it was."""

    username: str = ""


class Object(msgspec.Struct, frozen=True):
    """What it was about."""

    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Line(msgspec.Struct, rename="camel", frozen=True):
    """One request; a watch has two lines of one id, when it begins and when it ends."""

    verb: str
    user: User
    user_agent: str = ""
    object_ref: Object = Object()
    request_received_timestamp: datetime = datetime.min
    audit_id: str = msgspec.field(default="", name="auditID")


_DECODER = msgspec.json.Decoder(Line)


def lines_from(log: Path, offset: int = 0) -> Iterator[tuple[Line, int]]:
    """What was logged from ``offset`` on, each with the offset behind it."""
    with log.open("rb") as file:
        file.seek(offset)
        for text in file:
            offset += len(text)
            try:
                yield _DECODER.decode(text), offset
            except msgspec.DecodeError:
                continue  # the last line may not be complete yet


def by_client(log: Path, start: datetime, end: datetime) -> Counter[str]:
    """Writes between two times as "client: VERB resource/subresource".

    Left out are the harness itself and what ``writes`` leaves out, but not pods/status: who
    writes that is to be seen here.
    """
    found: Counter[str] = Counter()
    for line, _ in lines_from(log):
        verb = _WRITES.get(line.verb)
        if verb is None or not start <= line.request_received_timestamp <= end:
            continue
        what = line.object_ref.resource
        if line.object_ref.subresource:
            what = f"{what}/{line.object_ref.subresource}"
        if what in LEFT_OUT - {"pods/status"} or what.endswith("reviews"):
            continue
        client = _client(line)
        if client != _HARNESS:
            found[f"{client}: {verb} {what}"] += 1
    return found


def _client(line: Line) -> str:
    name = line.user.username
    if name == "admin":
        return line.user_agent.split("/")[0]
    if name.startswith(_SERVICE_ACCOUNT):
        return name.rsplit(":", 1)[1]
    return name.removeprefix("system:")
