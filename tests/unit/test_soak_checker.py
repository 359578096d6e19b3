"""The soak's checker sees a device above its capacity, and forgets what pods gave back."""

import json
from typing import Any

from tests.soak.checker import Checker

CARD_MIB = 81920


def pod(name: str, milli: int, mib: int = 100, phase: str = "Running") -> dict[str, Any]:
    ledger = {"v": 1, "n": "a", "c": {"0": {"0": [milli, mib]}}}
    meta = {"uid": name, "namespace": "team", "name": name}
    meta["annotations"] = {"gpu-scheduler.io/allocation": json.dumps(ledger)}
    return {"metadata": meta, "spec": {}, "status": {"phase": phase}}


def checker() -> Checker:
    site: Any = None  # only for connections
    return Checker(site, lambda node, device: f"{node}/{device}", CARD_MIB)


def test_more_than_a_device_has_is_noted_once_with_its_pods() -> None:
    eyes = checker()
    eyes._see(pod("x", 600), gone=False)
    assert not eyes.above
    for _ in range(2):
        eyes._see(pod("y", 600), gone=False)
    (above,) = eyes.above
    assert (above.milli, sorted(above.pods)) == (1200, ["team/x", "team/y"])
    assert eyes.peak_milli == 1200


def test_more_memory_than_a_device_has_is_noted_too() -> None:
    eyes = checker()
    eyes._see(pod("x", 100, CARD_MIB), gone=False)
    eyes._see(pod("y", 100, 1), gone=False)
    assert len(eyes.above) == 1


def test_what_has_ended_or_gone_holds_nothing() -> None:
    eyes = checker()
    eyes._see(pod("x", 600), gone=False)
    eyes._see(pod("x", 600, phase="Succeeded"), gone=False)
    eyes._see(pod("y", 600), gone=False)
    eyes._see(pod("y", 600), gone=True)
    assert eyes.held_milli() == 0
    assert eyes.placements == 2
    assert not eyes.above
