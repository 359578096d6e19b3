"""A picture of plays by several rules: what is lost, over how long guarantees wait, and goodput.

Needs matplotlib, which the extra ``plot`` installs; it is imported when a picture is asked for.
"""

from collections.abc import Mapping
from pathlib import Path

from tests.perf.sharing.figures import Figures, percentile

_DELAYS = (0, 1, 3, 10, 30, 100, 300, 1000, 10_000, 100_000)
_MARKS = {"fair": "o", "strict": "X", "at-once": "s", "never": "D"}


def draw(path: Path, plays: Mapping[str, Mapping[str, Figures]]) -> None:
    """Write the picture; ``plays``: figures by workload and rules."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    rules = list(next(iter(plays.values())))
    longest, most = 0.0, 0.0
    for number, (workload, found) in enumerate(plays.items()):
        color = f"C{number}"
        delays = [percentile(found[name].guarantee_delays, 0.99) for name in rules]
        goodputs = [found[name].useful_percent for name in rules]
        lost = [found[name].lost_percent for name in rules]
        longest, most = max(longest, *delays), max(most, *lost)
        for axes, xs in ((left, delays), (right, goodputs)):
            if len(plays) > 1:
                line = sorted(zip(xs, lost, strict=True))
                axes.plot(*zip(*line, strict=True), "-", color=color, linewidth=1, alpha=0.4)
            for name, x, y in zip(rules, xs, lost, strict=True):
                mark = _MARKS.get(name, "o")
                axes.plot(x, y, mark, color=color, markersize=8, alpha=0.8)
        left.plot([], [], "o", color=color, label=workload)
    for name in rules:
        left.plot([], [], _MARKS.get(name, "o"), color="grey", label=name)
    left.set_xscale("symlog", linthresh=1)  # from none to minutes
    ticks = [delay for delay in _DELAYS if delay <= max(1000, 2 * longest)]
    left.set_xticks(ticks, [f"{delay:g}" for delay in ticks])
    left.set_xlim(-0.5, 2 * max(ticks[-1], longest))
    left.set_xlabel("p99 delay of guarantees, seconds")
    left.set_ylabel("GPU time lost to evictions, % of what was used")
    right.set_xlabel("goodput: useful GPU time, % of the capacity")
    right.margins(x=0.1)
    figure.legend(loc="outside right center", fontsize="small")
    height = most or 1.0
    for axes in (left, right):
        axes.set_ylim(-0.05 * height, 1.1 * height)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
