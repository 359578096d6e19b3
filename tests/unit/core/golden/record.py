"""The golden record: what the planner decides in 5,000 random histories, as a digest of each.

``plans.txt`` was made by the code before a change; ``test_golden_plans`` replays it. The line of a
history holds two digests: of what was decided, and of the sentences about it. Where a line differs,
``python -m tests.unit.core.golden.record --show SEED``, here and in a checkout of the commit that
made the record, prints the two to compare. A change that is meant to alter plans writes the record
anew (without arguments, two minutes) in a commit that says what alters and why.
"""

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.unit.core.golden.history import History

from gpu_scheduler.core.model.decision import Plan

FILE = Path(__file__).with_name("plans.txt")
HISTORIES, CYCLES = 5_000, 8
CHUNK = 100  # histories
_DIGITS = 8


def plans(seed: int) -> Iterator[tuple[History, Plan]]:
    """The plans of a history, each before it is carried out."""
    history = History.of(seed)
    for plan in history.plans(CYCLES):
        yield history, plan


def line(seed: int) -> str:
    """Both digests of a history."""
    decided, said = hashlib.sha256(), hashlib.sha256()
    for _, plan in plans(seed):
        decided.update("\n".join(decisions(plan)).encode())
        said.update("\n".join(sentences(plan)).encode())
    return f"{decided.hexdigest()[:_DIGITS]} {said.hexdigest()[:_DIGITS]}"


def decisions(plan: Plan) -> Iterator[str]:
    """What is done, line by line; who waits and in which order, without why."""
    for place in plan.assignments:
        devices = " ".join(f"{g.container}:{g.device}:{g.milli}:{g.mib}" for g in place.devices)
        yield f"place {place.job} {place.pod} {place.node} {devices}"
    for evict in plan.evicts:
        whole = "whole" if evict.whole_job else "one"
        yield f"evict {evict.job} {evict.pod} {evict.beneficiary} {evict.reason.value} {whole}"
    for kept in plan.reservations:
        devices = " ".join(f"{g.container}:{g.device}:{g.milli}:{g.mib}" for g in kept.devices)
        yield f"hold {kept.job} {kept.pod} {kept.node} {kept.reason.value} {kept.start} {devices}"
    for wait in plan.waits:
        yield f"wait {wait.job} {wait.position}"
    yield f"shares {_shares(plan.shares_milli.items())}"
    for model, shares in sorted(plan.shares_by_model_milli.items()):
        yield f"shares of {model} {_shares(shares.items())}"
    yield f"again {plan.again_at}"


def sentences(plan: Plan) -> Iterator[str]:
    """Why each job waits and each pod has to go."""
    for wait in plan.waits:
        yield f"{wait.job} {wait.reason.value}: {wait.message}"
    for evict in plan.evicts:
        yield f"{evict.pod}: {evict.message}"


def _shares(shares: Iterable[tuple[str, int]]) -> str:
    return " ".join(f"{name}={milli}" for name, milli in sorted(shares))


def features(seeds: Iterable[int]) -> Counter[str]:
    """How often the plans of these histories do what they can do."""
    found: Counter[str] = Counter()
    for seed in seeds:
        for history, plan in plans(seed):
            waiting = {pod.uid: pod for pod in history.waiting}
            for place in plan.assignments:
                pod = waiting[place.pod]
                found["place a member of a gang" if pod.gang else "place a pod"] += 1
                found["place who had failed elsewhere"] += pod.name in history.avoided
                found["place a lost member again"] += bool(pod.gang and pod.again)
            for evict in plan.evicts:
                whole = "a member of a gang" if evict.whole_job else "a pod"
                found[f"evict {whole}: {evict.reason.value}"] += 1
            for reservation in plan.reservations:
                of = "a member of a gang" if waiting[reservation.pod].gang else "a pod"
                found[f"hold for {of}: {reservation.reason.value}"] += 1
            for wait in plan.waits:
                found[f"wait: {wait.reason.value}"] += 1
            found["share of a model"] += bool(plan.shares_by_model_milli)
    return +found


def chunk(number: int) -> range:
    """The seeds of a part of the record."""
    return range(number * CHUNK, (number + 1) * CHUNK)


def _record(number: int) -> tuple[list[str], Counter[str]]:
    return [line(seed) for seed in chunk(number)], features(chunk(number))


def write() -> None:
    """Write the record, and how often it holds which feature."""
    lines: list[str] = []
    found: Counter[str] = Counter()
    with ProcessPoolExecutor() as flavor:
        for some, counts in flavor.map(_record, range(HISTORIES // CHUNK)):
            lines += some
            found += counts
    head = [f"# {count} {what}" for what, count in sorted(found.items())]
    FILE.write_text("\n".join(head + lines) + "\n", encoding="utf-8")


def read() -> tuple[list[str], dict[str, int]]:
    """The lines of all histories, and how often the record holds which feature."""
    text = FILE.read_text(encoding="utf-8").splitlines()
    head = [each[2:].split(" ", 1) for each in text if each.startswith("#")]
    found = {what: int(count) for count, what in head}
    return [each for each in text if not each.startswith("#")], found


def main() -> None:
    """Write the record, or show one history."""
    parser = argparse.ArgumentParser(prog="python -m tests.unit.core.golden.record")
    parser.add_argument("--show", type=int, metavar="SEED", help="print this history's plans")
    options = parser.parse_args()
    if options.show is None:
        write()
        return
    for cycle, (_, plan) in enumerate(plans(options.show)):
        print(f"cycle {cycle}", *decisions(plan), *sentences(plan), sep="\n  ")  # noqa: T201


if __name__ == "__main__":
    main()
