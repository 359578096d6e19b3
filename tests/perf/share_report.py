"""What pods that ask by themselves cost, from measured runs to tables in Markdown. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.perf.admission import ASKING, MADE, PLAIN, Case
from tests.perf.figures import Json, span, spread, table
from tests.perf.schedulers import (
    BIND,
    BIND_CAP,
    SHARE,
    SHARE_RENDERED,
    STOCK,
    STOCK_DEPLOYMENT,
)

# A Deployment's pods, and those of a Job that they are compared with in each round.
_PAIRS = (
    (SHARE, BIND_CAP),
    (SHARE, BIND),
    (SHARE_RENDERED, BIND_CAP),
    (SHARE, SHARE_RENDERED),
    (STOCK_DEPLOYMENT, STOCK),
    (SHARE, STOCK_DEPLOYMENT),
)
_API_SERVER, _OPERATOR = "kube-apiserver", "operator"


def deployments(runs: Sequence[Json]) -> str:
    """Each pair that ran in the same rounds; empty where none did."""
    of = {(run["variant"], run["round"]): run for run in runs}
    rows = []
    for ours, other in _PAIRS:
        pairs = [
            (of[ours.name, number], of[other.name, number])
            for name, number in of
            if name == ours.name and (other.name, number) in of
        ]
        if pairs:
            rows.append([f"{ours.name} : {other.name}", *_compared(pairs)])
    if not rows:
        return ""
    head = [
        "within a round",
        "pods/s, first to second",
        "of the time, until all pods were made",
        "API server, ms of CPU per pod",
        "more than second",
        "operator, ms of CPU per pod",
        "more than second",
    ]
    return "### A Deployment's pods beside a Job's\n\n" + table(head, rows)


def _compared(pairs: Sequence[tuple[Json, Json]]) -> Iterator[str]:
    rates = [a["pods_per_second"] / b["pods_per_second"] for a, b in pairs]
    yield span(spread(rates), 2)
    yield span(spread(a["created_seconds"] / a["seconds"] for a, _ in pairs), 2)
    for process in (_API_SERVER, _OPERATOR):
        own = [_ms(a, process) for a, _ in pairs]
        more = [_ms(a, process) - _ms(b, process) for a, b in pairs]
        yield from (span(spread(own), 2), span(spread(more), 2))


def _ms(run: Json, process: str) -> float:
    """CPU per pod; none for a process that did not run."""
    return float(1000 * run["cpu_seconds"].get(process, 0.0) / run["pods"])


def added(runs: Sequence[Json]) -> Mapping[str, Mapping[str, float]]:
    """Milliseconds per pod: of each case, and what is added, within each round."""
    of = {(run["case"], run["round"]): run["ms"] for run in runs}
    rounds = sorted({number for _, number in of})

    def difference(more: Case, less: Case) -> Mapping[str, float]:
        return spread(of[more.name, number] - of[less.name, number] for number in rounds)

    names = dict.fromkeys(name for name, _ in of)
    cases = {name: spread(of[name, number] for number in rounds) for name in names}
    return {
        **cases,
        "plain, added": difference(Case(PLAIN, True), Case(PLAIN, False)),
        "asking, added": difference(Case(ASKING, True), Case(ASKING, False)),
        "of that the larger pod's own": difference(Case(MADE, False), Case(ASKING, False)),
        "of that the policies'": difference(Case(ASKING, True), Case(MADE, False)),
    }


def admission(part: Mapping[str, Any], pods: int) -> str:
    """The part `admission` of the page; ``pods``: of a batch."""
    runs = part["runs"]
    rounds = max(run["round"] for run in runs) + 1
    looked = {run["case"]: f"{run['evaluations']:.2f}" for run in runs}
    rows = [[name, span(of, 2), looked.get(name, "")] for name, of in added(runs).items()]
    title = f"{rounds} round{'s' * (rounds > 1)} of {pods} dry runs each"
    return f"### What the policies for pods that ask cost: {title}\n\n" + table(
        ["", "API server, ms of CPU per pod", "evaluations of the policy per pod"], rows
    )
