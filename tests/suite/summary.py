"""The last lines of a run of several tiers: their times, the dearest tests, what has grown, counts.

``python -m tests.suite.summary FOLDER`` reads what each tier's pytest left there as TIER.json, and
keeps it as the last run of that tier. ``--record`` makes recorded.json of the last runs, with which
later ones are compared: a tier that takes more than 15 % longer is said.
"""

import argparse
import json
import os
import platform
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.suite import store
from tests.suite.durations import RECORDED, recorded

DEAREST = 10
GROWN_PERCENT = 15
DEAR_SECONDS = 2.0  # what is recorded of single tests


@dataclass(frozen=True, slots=True)
class Tier:
    """What a tier's run has come to.

    Attributes:
        expected: failures that are (xfail).
        skipped: a reason for each.
        tests: seconds of each.
    """

    name: str
    seconds: float
    passed: int
    failed: int
    expected: int
    skipped: list[str]
    tests: dict[str, float]


def read(folder: Path) -> list[Tier]:
    """The tiers that ran, in the order of their ends."""
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    return [Tier(name=path.stem, **json.loads(path.read_text())) for path in files]


def lines(tiers: list[Tier], before: dict[str, Any]) -> list[str]:
    """What is shown; ``before`` is the recorded file."""
    found = []
    for tier in tiers:
        known = before["tiers"].get(tier.name)
        compared = f" (recorded: {known:.0f} s)" if known else ""
        also = f", {tier.expected} failed as expected" if tier.expected else ""
        found.append(f"{tier.name:7}{tier.seconds:6.0f} s{compared}, {tier.passed} passed{also}")
        found += [f"        {n} skipped: {why}" for why, n in Counter(tier.skipped).items()]
    dearest = sorted(((s, n) for tier in tiers for n, s in tier.tests.items()), reverse=True)
    found.append("dearest tests:")
    found += [f"{seconds:7.1f} s  {name}" for seconds, name in dearest[:DEAREST]]
    found += grown(tiers, before)
    passed, failed = sum(t.passed for t in tiers), sum(t.failed for t in tiers)
    skipped = sum(len(t.skipped) for t in tiers)
    # In the form that those know who read the last line of a run.
    return [*found, f"{passed} passed, {failed} failed, {skipped} skipped"]


def grown(tiers: list[Tier], before: dict[str, Any]) -> list[str]:
    """A sentence for each tier that takes longer than recorded by more than 15 %.

    A tier of which a part was skipped shows nothing about the time of the whole.
    """
    return [
        f"GROWN: the {tier.name} tier took {tier.seconds:.0f} s, {tier.seconds / known - 1:.0%} "
        f"more than recorded ({known:.0f} s; make test-record records the last run)"
        for tier in tiers
        if (known := before["tiers"].get(tier.name))
        and not tier.skipped
        and tier.seconds * 100 > known * (100 + GROWN_PERCENT)
    ]


def record(tiers: list[Tier]) -> None:
    """Write the recorded file from those tiers of which nothing was skipped; others in it stay."""
    tiers = [tier for tier in tiers if not tier.skipped]
    before = recorded()
    names = {tier.name for tier in tiers}
    dear = {n: s for tier in tiers for n, s in tier.tests.items() if s >= DEAR_SECONDS}
    seen = {name for tier in tiers for name in tier.tests}
    found = {
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors",
        "tiers": {
            **{name: s for name, s in before["tiers"].items() if name not in names},
            **{tier.name: round(tier.seconds) for tier in tiers},
        },
        "tests": {**{n: s for n, s in before["tests"].items() if n not in seen}, **dear},
    }
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suite.summary")
    parser.add_argument("folder", type=Path, nargs="?", help="of a run; the last runs without it")
    parser.add_argument("--record", action="store_true", help="write recorded.json")
    chosen = parser.parse_args(arguments)
    last = store.folder() / "last"
    if chosen.folder:
        last.mkdir(exist_ok=True)
        for path in chosen.folder.glob("*.json"):
            shutil.copy2(path, last)
    tiers = read(chosen.folder or last)
    if chosen.record:
        record(tiers)
    sys.stdout.writelines(f"{line}\n" for line in lines(tiers, recorded()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
