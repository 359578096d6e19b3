"""What sharing costs: plays workloads by several rules and writes the tables of docs/sharing.md.

``make bench-sharing``, or ``python -m tests.perf.bench_sharing [--seeds N]``. No cluster is needed:
the planner is the operator's, and only time is played. Seeds begin at 101; the planner's constants
were chosen on others (docs/sharing.md). The figures depend on nothing but the code and the seeds.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from tests.perf.figures import table
from tests.perf.machine import machine
from tests.perf.progress import progress
from tests.perf.report import write_page
from tests.perf.sharing import frontier
from tests.perf.sharing.command import ComparisonRequest, play, workload_of
from tests.perf.sharing.figures import CLASSES, Figures, mean, merged, percentile

from gpu_scheduler.simulate.preemption_rules import RULES

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "fixtures" / "traces" / "openb"
PAGE, PICTURE = ROOT / "docs" / "sharing.md", ROOT / "docs" / "sharing.svg"
FIRST_SEED, SEEDS = 101, 32
LOADS = (0.66, 0.88, 1.1)  # strict rules use 58, 76 and 87 % of the capacity with these seeds
OTHERS = {"day": 0.5, "sweep": 0.9, "trace": 1.0}
OTHER_SEEDS = 4
EVERY = 60.0  # seconds between checkpoints


class Played(NamedTuple):
    """One play: of what, by which rules."""

    workload: str
    load: float
    saves: bool
    rules: str
    seed: int


def plays(seeds: int) -> list[Played]:
    """All of them, the longest first."""
    found = [
        Played(name, load, False, rules, FIRST_SEED + n)
        for name, load in OTHERS.items()
        for rules in RULES
        for n in range(min(seeds, OTHER_SEEDS))
    ]
    found += [
        Played("random", load, saves, rules, FIRST_SEED + n)
        for load in reversed(LOADS)
        for saves in (False, True)
        for rules in RULES
        for n in range(seeds)
    ]
    return found


def figures(played: Played) -> Figures:
    """Those of one play."""
    request = ComparisonRequest(
        played.workload,
        played.seed,
        played.load,
        checkpoint_seconds=EVERY if played.saves else None,
        nodes=TRACE / "openb_node_list_gpu_node.csv.xz",
        pods=TRACE / "openb_pod_list_default.csv.xz",
    )
    return play(workload_of(request), RULES[played.rules])


def together(found: Mapping[Played, Figures]) -> dict[tuple[str, float, bool, str], Figures]:
    """Those of all seeds of one kind, together."""
    kinds = dict.fromkeys(each[:4] for each in found)
    return {kind: merged([f for each, f in found.items() if each[:4] == kind]) for kind in kinds}


def row(name: str, found: Figures, strict: Figures) -> list[str]:
    """One line of a table; ``strict``: of the same work by strict rules."""
    delays, helpable = found.guarantee_delays, found.helpable_delays
    p95 = [percentile(each.waits_of("high"), 0.95) for each in (found, strict)]
    return [
        name,
        f"{found.used_percent:.1f}",
        f"{found.lost_percent:.2f}",
        f"{found.useful_percent:.1f}",
        f"{found.useful_percent / strict.useful_percent:.2f}",
        f"{found.evicted_per_ended:.3f}",
        f"{found.repeats}",
        f"{percentile(delays, 0.99):.0f} ({percentile(delays, 1.0):.0f})",
        f"{percentile(helpable, 0.99):.0f} ({percentile(helpable, 1.0):.0f})",
        f"{mean(found.below_shares):.1f}",
        f"{mean(found.short_of_shares):.1f}",
        f"{p95[0] - p95[1]:+.0f}",
        f"{percentile(found.later_than(strict, 'high'), 0.95):+.0f}",
    ]


def waits_row(name: str, found: Figures) -> list[str]:
    """One line of the table of waits."""
    parts = (0.5, 0.95, 0.99)
    waits = [found.waits_of(each) for each in CLASSES]
    return [name, *(" / ".join(f"{percentile(w, p):.0f}" for p in parts) for w in waits)]


HEAD = (
    "rules",
    "used, %",
    "lost, % of used",
    "goodput, %",
    "to strict",
    "evictions per ended pod",
    "repeats",
    "guarantee p99 (longest), s",
    "of it helpable, s",
    "below share, %",
    "short of share, %",
    "high priority, p95 less strict p95, s",
    "pod by pod, p95, s",
)
WAITS_HEAD = ("waits, p50 / p95 / p99, s", *CLASSES)


def page(found: Mapping[tuple[str, float, bool, str], Figures], seeds: int) -> str:
    """The measured part of the page."""
    about = machine()
    parts = [
        f"{datetime.now(UTC):%Y-%m-%d}, commit {about['commit']}, Python {about['python']};"
        f" `python -m tests.perf.bench_sharing --seeds {seeds}`; seeds {FIRST_SEED} to"
        f" {FIRST_SEED + seeds - 1}, for day, sweep and trace the first {OTHER_SEEDS}."
    ]
    kinds = dict.fromkeys(key[:3] for key in found)
    for workload, load, saves in sorted(kinds, key=lambda k: (k[0] != "random", k[2], k[0], k[1])):
        some = {rules: found[workload, load, saves, rules] for rules in RULES}
        title = f"**{workload}, load {load:g}**"
        if saves:
            title += f", half of the jobs save their state every {EVERY:g} s"
        rows = [row(rules, each, some["strict"]) for rules, each in some.items()]
        waits = [waits_row(rules, each) for rules, each in some.items()]
        parts.append(f"{title}\n\n{table(HEAD, rows)}\n\n{table(WAITS_HEAD, waits)}")
    return "\n\n".join(parts)


def picture(path: Path, found: Mapping[tuple[str, float, bool, str], Figures]) -> None:
    """The frontier of the random workloads, and of the others."""
    kinds = dict.fromkeys(key[:3] for key in found if not key[2])
    frontier.draw(
        path,
        {
            f"{workload} {load:g}": {r: found[workload, load, saves, r] for r in RULES}
            for workload, load, saves in sorted(kinds, key=lambda k: (k[0] != "random", k[:2]))
        },
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Play everything and write the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.bench_sharing", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args(arguments)
    todo = plays(options.seeds)
    found: dict[Played, Figures] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool, progress(sys.stderr, len(todo), 1) as tell:
        for played, each in zip(todo, pool.map(figures, todo), strict=True):
            found[played] = each
            tell()
    all_of = together(found)
    write_page(options.page, page(all_of, options.seeds))
    picture(options.picture, all_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
