"""Who wrote what, from the API server's audit log: the check on what the metric cannot say.

Used for one run of each variant on a cluster of its own, since logging each request costs time.
"""

from collections import Counter
from datetime import datetime
from pathlib import Path

import msgspec
from tests.perf.writes import LEFT_OUT

_WRITES = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_SERVICE_ACCOUNT = "system:serviceaccount:"
_HARNESS = "bench-harness"


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Object(msgspec.Struct, frozen=True):
    resource: str = ""
    subresource: str = ""


class _Line(msgspec.Struct, rename="camel", frozen=True):
    verb: str
    user: _User
    user_agent: str = ""
    object_ref: _Object = _Object()
    request_received_timestamp: datetime = datetime.min


def by_client(log: Path, start: datetime, end: datetime) -> Counter[str]:
    """Writes between two times as "client: VERB resource/subresource".

    Left out are the harness itself and what ``writes`` leaves out, but not pods/status: who
    writes that is to be seen here.
    """
    found: Counter[str] = Counter()
    decoder = msgspec.json.Decoder(_Line)
    with log.open("rb") as lines:
        for text in lines:
            try:
                line = decoder.decode(text)
            except msgspec.DecodeError:
                continue  # the last line may not be complete yet
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


def _client(line: _Line) -> str:
    name = line.user.username
    if name == "admin":
        return line.user_agent.split("/")[0]
    if name.startswith(_SERVICE_ACCOUNT):
        return name.rsplit(":", 1)[1]
    return name.removeprefix("system:")
