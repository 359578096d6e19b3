"""With pages and what-ifs against without: ratios of the phases, bounds, and a table. Pure."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from gpu_scheduler.web.dashboard.rights import IN_ALL

Phase = Mapping[str, Any]
WORSE_AT_MOST = 0.05
REVIEWS_A_MINUTE = {
    "tokenreviews": 100.0,
    "subjectaccessreviews": 60 * sum(rate for rate, _ in IN_ALL.values()),
}
"""A review of a token each 50 to 60 s, of 50; of access what is let through for long at most."""
_SLOWER: Mapping[str, Callable[[Phase], float]] = {
    "planning cycle that places, wall, p50": lambda each: each["planning"]["wall"]["p50Ms"],
    "planning cycle that places, wall, p99": lambda each: each["planning"]["wall"]["p99Ms"],
    "planning cycle that places, CPU, p50": lambda each: each["planning"]["cpu"]["p50Ms"],
}
_FEWER: Mapping[str, Callable[[Phase], float]] = {
    "pods placed a second": lambda each: each["podsPlacedASecond"],
}
_TOLD: Mapping[str, Callable[[Phase], float]] = {
    "operator's CPU": lambda each: each["cpuSecondsAMinute"]["operator"],
    "operator's memory": lambda each: each["rssMiB"],
    "loop late, p99": lambda each: each["stall"]["p99Ms"],
}


def ratios(phases: Sequence[Phase]) -> dict[str, dict[str, float]]:
    """Open pages (S) and what-ifs (W) against the mean of neither (N)."""
    found: dict[str, dict[str, float]] = {}
    for name, figure in {**_SLOWER, **_FEWER, **_TOLD}.items():
        means = {
            letter: fmean(figure(each) for each in phases if each["phase"] == letter)
            for letter in {each["phase"] for each in phases}
        }
        found[name] = {
            f"{letter}/N": round(means[letter] / means["N"], 3)
            for letter in "SW"
            if letter in means and means.get("N")
        }
    return found


def bounds(phases: Sequence[Phase]) -> list[dict[str, Any]]:
    """Each bound, what was seen, and whether it is met."""
    found = []
    for name, pairs in ratios(phases).items():
        for pair, seen in pairs.items():
            if name in _SLOWER:
                most = 1 + WORSE_AT_MOST
                found.append(_bound(f"{name}, {pair}, at most", seen, most, seen <= most))
            elif name in _FEWER:
                least = 1 - WORSE_AT_MOST
                found.append(_bound(f"{name}, {pair}, at least", seen, least, seen >= least))
    for each in (each for each in phases if each["phase"] == "S"):
        for kind, figures in each["reviews"].items():
            most = REVIEWS_A_MINUTE[kind]
            seen = figures["mean"]
            found.append(_bound(f"{kind} a minute, S, at most", seen, most, seen <= most))
        pages = each["readers"]["open"], each["readers"]["wanted"]
        found.append(_bound("open pages, S, at least", *pages, pages[0] >= pages[1]))
    return found


def _bound(what: str, seen: float, bound: float, met: bool) -> dict[str, Any]:
    return {"what": what, "seen": seen, "bound": bound, "met": met}


_ROWS: Mapping[str, Callable[[Phase], str]] = {
    "operator's CPU, of a core": lambda p: f"{p['cpuSecondsAMinute']['operator'] / 0.6:.1f} %",
    "operator's memory (RSS), and the most": lambda p: (
        f"{p['rssMiB']:.0f}, {p['peakRssMiB']:.0f} MiB"
    ),
    "what-if processes: the most memory of one, and of all": lambda p: (
        f"{p['readers']['processMiB']:.0f}, {p['readers']['processesMiB']:.0f} MiB"
    ),
    "pods placed a second": lambda p: f"{p['podsPlacedASecond']:.2f}",
    "planning cycle that places, wall: p50, p99": lambda p: _two(p["planning"]["wall"]),
    "the same, CPU": lambda p: _two(p["planning"]["cpu"]),
    "loop late: p50, p99": lambda p: _two(p["stall"]),
    "pages open": lambda p: f"{p['readers']['open']}",
    "views sent a second, of bytes": lambda p: (
        f"{p['readers']['viewsASecond']:.1f}, {p['readers']['bytesASecond'] / 1e6:.2f} MB"
    ),
    "what-ifs: answered a minute, refused a minute": lambda p: (
        f"{p['readers']['answeredAMinute']:.1f}, {p['readers']['refusedAMinute']:.1f}"
    ),
    "a what-if: p50, slowest": lambda p: (
        f"{p['readers']['whatIfP50']:.1f}, {p['readers']['whatIfMax']:.1f} s"
    ),
    "TokenReviews a minute, the most in one": lambda p: _reviews(p, "tokenreviews"),
    "SubjectAccessReviews a minute, the most in one": lambda p: _reviews(p, "subjectaccessreviews"),
}


def _two(figures: Mapping[str, float]) -> str:
    return f"{figures['p50Ms']:.2f}, {figures['p99Ms']:.2f} ms"


def _reviews(phase: Phase, kind: str) -> str:
    found = phase["reviews"].get(kind)
    return f"{found['mean']:.0f}, {found['most']:.0f}" if found else "–"


def table(phases: Sequence[Phase]) -> str:
    """For people: a column for each phase, ratios, then the bounds."""
    lines = [
        f"|  | {' | '.join(each['phase'] for each in phases)} |",
        f"| --- |{' ---: |' * len(phases)}",
    ]
    lines += [f"| {name} | {' | '.join(map(cell, phases))} |" for name, cell in _ROWS.items()]
    lines += ["", "| against none | S/N | W/N |", "| --- | ---: | ---: |"]
    for name, pairs in ratios(phases).items():
        cells = (f"{pairs[key]:g}" if key in pairs else "–" for key in ("S/N", "W/N"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| bound | seen | bound | |", "| --- | ---: | ---: | --- |"]
    for each in bounds(phases):
        met = "met" if each["met"] else "missed"
        lines.append(f"| {each['what']} | {each['seen']:g} | {each['bound']:g} | {met} |")
    return "\n".join(lines)
