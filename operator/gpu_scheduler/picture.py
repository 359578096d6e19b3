"""Whether a picture can be written, asked before the work that it is to show.

Pictures need matplotlib, which the extra ``plot`` installs; whoever draws imports it only then.
Of the package ``sweeps.commands`` and ``cli.use`` draw; so do the benchmarks.
"""

from pathlib import Path

FORMATS = (".png", ".svg", ".pdf")


class PlotError(ValueError):
    """The picture cannot be made; the message says why."""


def check(path: Path, asked: str = "a picture") -> None:
    """Refuse at once what would fail in the end; ``asked``: what needs matplotlib, in words.

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
        raise PlotError(f"{asked} needs matplotlib: pip install matplotlib") from None
