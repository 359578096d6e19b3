"""What the planner decides is what it decided before: see ``record``."""

import pytest
from tests.unit.core.golden import record

LINES, FEATURES = record.read()


@pytest.mark.long(reads=("tests/unit/core/golden/plans.txt",))
@pytest.mark.parametrize("number", range(record.HISTORIES // record.CHUNK))
def test_the_planner_decides_as_it_did(number: int) -> None:
    seeds = record.chunk(number)
    differ = {seed: LINES[seed] for seed in seeds if record.line(seed) != LINES[seed]}
    assert not differ, f"python -m tests.unit.core.golden.record --show {min(differ)}"


def test_the_record_holds_every_feature() -> None:
    assert len(LINES) == record.HISTORIES
    kinds = [f"evict a {who}: {why}" for who in ("pod", "member of a gang") for why in WHYS]
    kinds += [f"hold for a {who}: {why}" for who in ("pod", "member of a gang") for why in KEPT]
    kinds += [f"wait: {why}" for why in WAITS]
    kinds += ["place a pod", "place a member of a gang", "place who had failed elsewhere"]
    kinds += ["place a lost member again", "share of a model", "evict a pod: consolidate"]
    assert set(kinds) == set(FEATURES)
    assert min(FEATURES.values()) >= 50, FEATURES


WHYS = ("reclaim", "priority")
KEPT = ("freed", "reserved")
WAITS = (
    "Invalid",
    "Unsatisfiable",
    "ExceedsQuota",
    "WaitingForQuota",
    "Fragmented",
    "WaitingForGPU",
    "WaitingForResources",
    "WaitingForTopology",
    "WaitingForGang",
)
