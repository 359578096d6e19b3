"""A picture of a run: unallocated GPU over the demand that has arrived, as PNG, SVG or PDF.

Needs matplotlib, which the extra ``plot`` installs; it is imported when a picture is asked for.
"""

from collections.abc import Sequence
from pathlib import Path

FORMATS = (".png", ".svg", ".pdf")


class PlotError(ValueError):
    """The picture cannot be made; the message says why."""


def check(path: Path) -> None:
    """Refuse before the simulation what would fail after it.

    Raises:
        PlotError: another format, no such folder, or matplotlib is not installed.
    """
    if path.suffix not in FORMATS:
        raise PlotError(f"{path}: a picture ends with {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise PlotError(f"{path}: there is no folder {path.parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PlotError("--plot needs matplotlib: pip install 'gpu-scheduler[plot]'") from None


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
