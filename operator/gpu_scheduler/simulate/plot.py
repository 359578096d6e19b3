"""A picture of a run: unallocated GPU over the demand that has arrived, as PNG, SVG or PDF.

Needs matplotlib, which the extra ``plot`` installs; it is imported when a picture is asked for.
"""

from collections.abc import Sequence
from pathlib import Path


def draw(path: Path, title: str, points: Sequence[tuple[float, float]]) -> None:
    """Write the picture; ``points`` are demand and allocated, in percent of the cluster."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot([x for x, _ in points], [100 - y for _, y in points])
    axes.set(title=title, xlabel="demand that has arrived, % of all GPUs")
    axes.set_ylabel("unallocated GPUs, %")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
