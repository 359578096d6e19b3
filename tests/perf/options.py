"""What the commands ``tests.perf.replay`` and ``tests.perf.sharing`` have of options alike."""

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

seed_option = click.option(
    "--seed", type=int, default=42, show_default=True, help="Decides all that is random."
)


def trace_options(words: str, *, required: bool = False) -> Callable[[F], F]:
    """``--nodes`` and ``--pods``, the files of a trace.

    Args:
        words: their help, with ``{}`` for what is in the file.
        required: whether they have to be given.
    """

    def add(command: F) -> F:
        for name in ("pods", "nodes"):  # the last one added is the first one shown
            told = words.format(name)
            of_file = click.Path(path_type=Path)
            command = click.option(f"--{name}", required=required, type=of_file, help=told)(command)
        return command

    return add


def plot_option(what: str) -> Callable[[F], F]:
    """``--plot``: a picture of ``what``."""
    words = f"Draw {what}: .png, .svg or .pdf."
    return click.option("--plot", type=click.Path(path_type=Path), help=words)


def finite(**values: float | None) -> None:
    """Refuse NaN, which is in no range and out of none.

    Raises:
        ValueError: a value is no number.
    """
    for name, value in values.items():
        if value is not None and not isfinite(value):
            raise ValueError(f"--{name.replace('_', '-')} {value}: a number")
