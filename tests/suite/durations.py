"""How long tests took: recorded by each run on this machine, read by the next.

Who starts the long ones first is done sooner. On a machine where a test never ran, the recorded
file of the repository stands in: recorded.json, written by ``make test-record``.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.suite.store import folder, replace

RECORDED = Path(__file__).with_name("recorded.json")


def tier_of(nodeid: str) -> str:
    """``unit`` of ``tests/unit/core/model/test_quota.py::test_room``."""
    return nodeid.split("/")[1] if nodeid.startswith("tests/") else ""


def seconds_of(nodeid: str) -> float | None:
    """Wall time of a test when it last passed, with its fixtures; None if it is not known."""
    return known_of(tier_of(nodeid)).get(nodeid, recorded()["tests"].get(nodeid))


def at_least(seconds: float, tiers: Collection[str]) -> dict[str, float]:
    """The tests of tiers that take so long, with what they take."""
    found = {n: s for n, s in recorded()["tests"].items() if tier_of(n) in tiers}
    for tier in tiers:
        found |= known_of(tier)
    return {nodeid: took for nodeid, took in found.items() if took >= seconds}


@cache
def known_of(tier: str) -> dict[str, float]:
    """What this machine knows of a tier when it is first asked: seconds by test."""
    try:
        found: dict[str, float] = json.loads(_file(tier).read_text())
    except (OSError, ValueError):
        return {}
    return found


@cache
def recorded() -> dict[str, Any]:
    """The file of the repository: ``machine``, ``tiers`` and the dear ``tests``, in seconds."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def record(took: Mapping[str, float]) -> None:
    """Keep what tests took; those that did not run stay as they were."""
    tiers = {tier_of(nodeid) for nodeid in took}
    for tier in tiers - {""}:
        mine = {nodeid: round(s, 2) for nodeid, s in took.items() if tier_of(nodeid) == tier}
        known_of.cache_clear()  # another run may have written meanwhile
        replace(_file(tier), json.dumps({**known_of(tier), **mine}, indent=0))
        known_of.cache_clear()


def _file(tier: str) -> Path:
    return folder() / f"durations-{tier}.json"
