"""With signals against without: ratios of the phases, bounds met or missed, and a table. Pure."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

Phase = Mapping[str, Any]
SLOWER_AT_MOST = 1.05
ANSWER_MS, STALL_MS, AGE_SECONDS = 50.0, 20.0, 2.0
_RATIOS: Mapping[str, Callable[[Phase], float]] = {
    "planning cycle that places, wall, mean": lambda each: each["planning"]["wall"]["meanMs"],
    "planning cycle that places, wall, p50": lambda each: each["planning"]["wall"]["p50Ms"],
    "planning cycle that places, CPU, mean": lambda each: each["planning"]["cpu"]["meanMs"],
    "planning cycle that places, CPU, p50": lambda each: each["planning"]["cpu"]["p50Ms"],
    "all planning cycles, wall, mean": lambda each: each["cycle"]["meanMs"],
    "operator's CPU": lambda each: each["cpuSecondsAMinute"]["operator"],
    "operator's memory": lambda each: each["rssMiB"],
    "pods placed": lambda each: each["podsPlacedASecond"],
}


def ratios(phases: Sequence[Phase]) -> dict[str, dict[str, Any]]:
    """With signals, and with half of the agents no good, against the mean without."""
    by = {letter: [each for each in phases if each["phase"] == letter] for letter in "ABC"}
    found: dict[str, dict[str, Any]] = {}
    for name, figure in _RATIOS.items():
        means = {letter: fmean(map(figure, each)) for letter, each in by.items() if each}
        found[name] = {
            f"{one}/{other}": round(means[one] / means[other], 3)
            for one, other in (("B", "A"), ("C", "A"), ("C", "B"))
            if one in means and means.get(other)
        }
        found[name]["pairs"] = [
            round(figure(with_them) / figure(without), 3)
            for without, with_them in zip(by["A"], by["B"], strict=False)
            if figure(without)
        ]
    return found


def bounds(phases: Sequence[Phase]) -> list[dict[str, Any]]:
    """Each bound, what was seen, and whether it is met."""
    seen = ratios(phases)
    found = [
        _bound(f"{name}, {pair}", seen[name][pair], SLOWER_AT_MOST)
        for name in list(_RATIOS)[:4]
        for pair in ("B/A", "C/A")
        if pair in seen[name]
    ]
    for letter in "BC":
        metrics = [each["metrics"] for each in phases if each["phase"] == letter]
        if not metrics:
            continue
        slowest = max(each["maxMs"] for each in metrics)
        found.append(_bound(f"/metrics answered, slowest, ms, {letter}", slowest, ANSWER_MS))
        p50 = max(each["p50Ms"] for each in metrics)
        found.append(_bound(f"/metrics answered, p50, ms, {letter}", p50, ANSWER_MS))
        for name, why in (("stall", ""), ("stallBesidePlanning", " and not by planning")):
            stall = max(each[name]["p99Ms"] for each in metrics)
            found.append(
                _bound(f"loop late while scraped{why}, p99, ms, {letter}", stall, STALL_MS)
            )
        failed = sum(each["failed"] for each in metrics)
        found.append(_bound(f"/metrics not answered, {letter}", failed, 0))
        age = max(each.get("ageAtLeastMax", 0.0) for each in metrics)
        found.append(_bound(f"/metrics older than, at most, s, {letter}", age, AGE_SECONDS))
    return found


def _bound(what: str, seen: float, most: float) -> dict[str, Any]:
    return {"what": what, "seen": seen, "bound": most, "met": seen <= most}


_ROWS: Mapping[str, Callable[[Phase], str]] = {
    "operator's CPU, of a core": lambda p: f"{p['cpuSecondsAMinute']['operator'] / 0.6:.1f} %",
    "operator's memory (RSS)": lambda p: f"{p['rssMiB']:.0f} MiB",
    "pods placed a second": lambda p: f"{p['podsPlacedASecond']:.2f}",
    "planning cycle that places, wall: mean, p50, p99": lambda p: _three(p["planning"]["wall"]),
    "the same, CPU": lambda p: _three(p["planning"]["cpu"]),
    "planning, of a core": lambda p: f"{p['planning']['percentOfACore']:.1f} %",
    "loop late, p99; not by planning": lambda p: _late(p),
    "pauses for garbage: how many, p99": lambda p: (
        f"{p['collector']['count']:.0f}, {p['collector']['p99Ms']:.0f} ms"
    ),
    "GPUUsages written a minute": lambda p: f"{p['gpuUsage']['writesAMinute']:.0f}",
    "their bytes a minute": lambda p: f"{p['gpuUsage']['bytesAMinute'] / 1e6:.2f} MB",
    "etcd: puts a minute": lambda p: f"{p['etcd']['putsAMinute']:.0f}",
    "etcd: bytes put a minute": lambda p: f"{p['etcd']['putBytesAMinute'] / 1e6:.2f} MB",
    "etcd: file grew a minute": lambda p: f"{p['etcd']['dbBytesAMinute'] / 1e6:.2f} MB",
    "`/metrics`: size": lambda p: f"{p['metrics']['bytes'] / 1e6:.2f} MB",
    "`/metrics` answered: p50, slowest": lambda p: (
        f"{p['metrics']['p50Ms']:.0f}, {p['metrics']['maxMs']:.0f} ms"
    ),
    "not answered": lambda p: str(p["metrics"]["failed"]),
    "older than (slowest scrape)": lambda p: _or_none(p["metrics"], "ageAtLeastMax"),
    "since the agent looked, p50": lambda p: _or_none(p["metrics"], "sinceLookedP50"),
    "the same while scraped": lambda p: _late(p["metrics"]),
}


def _three(figures: Mapping[str, float]) -> str:
    return f"{figures['meanMs']:.2f}, {figures['p50Ms']:.2f}, {figures['p99Ms']:.2f} ms"


def _late(figures: Mapping[str, Any]) -> str:
    return f"{figures['stall']['p99Ms']:.0f}; {figures['stallBesidePlanning']['p99Ms']:.0f} ms"


def _or_none(figures: Mapping[str, float], name: str) -> str:
    return f"{figures[name]:.1f} s" if name in figures else "–"


def table(phases: Sequence[Phase]) -> str:
    """For people: a column for each phase, then the bounds."""
    head = [each["phase"] for each in phases]
    lines = [f"|  | {' | '.join(head)} |", f"| --- |{' ---: |' * len(head)}"]
    for name, cell in _ROWS.items():
        lines.append(f"| {name} | {' | '.join(map(cell, phases))} |")
    lines += ["", "| bound | seen | at most | |", "| --- | ---: | ---: | --- |"]
    for each in bounds(phases):
        met = "met" if each["met"] else "missed"
        lines.append(f"| {each['what']} | {each['seen']:g} | {each['bound']:g} | {met} |")
    return "\n".join(lines)
