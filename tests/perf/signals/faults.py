"""What agents do that are no good: they say nothing, are slow, or talk nonsense. Pure."""

import itertools
from enum import StrEnum
from random import Random

import msgspec

from gpu_scheduler.usage.answer import VERSION


class Fault(StrEnum):
    """What is wrong with an agent."""

    NONE = "none"
    SILENT = "silent"  # takes the connection, and says nothing on it
    SLOW = "slow"  # begins to answer at once, and is done after half a minute
    GARBAGE = "garbage"


SLOW_SECONDS = 30.0
_BYTES_AT_MOST = 4 << 20  # that the operator reads


def faults_of(agents: int) -> list[Fault]:
    """Of each agent: half of them are no good, the same number in each way."""
    wrong = itertools.cycle((Fault.SILENT, Fault.SLOW, Fault.GARBAGE))
    return [next(wrong) if number % 2 else Fault.NONE for number in range(agents)]


def garbage(number: int, random: Random) -> tuple[str, bytes]:
    """Status and body of the answer of this number to one agent: each time another kind."""
    share = {"device": "0", "pod_uid": "a", "container": "main", "busy": 7.0}
    kinds: tuple[tuple[str, bytes], ...] = (
        ("200 OK", random.randbytes(200_000)),
        ("200 OK", msgspec.msgpack.encode({"v": VERSION + 1, "look": 1})),
        ("200 OK", b"\x91" * 100_000),  # arrays in arrays
        ("200 OK", msgspec.msgpack.encode({"v": VERSION, "look": 1, "shares": [share] * 1000})),
        ("200 OK", bytes(_BYTES_AT_MOST + 1)),
        ("500 Internal Server Error", b"<html>no</html>"),
    )
    return kinds[number % len(kinds)]
