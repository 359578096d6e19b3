"""A progress bar, for whoever plays something long. Called by the commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO


class Tell(Protocol):
    """Hears of progress."""

    def __call__(self, steps: int = 1) -> None:
        """So many more steps are done."""


_STRIDE = 64  # steps between two moves of the bar: more would cost more than planning


@contextmanager
def progress(stream: TextIO, total: int, stride: int = _STRIDE) -> Iterator[Tell]:
    """A bar on a terminal, nothing elsewhere or without rich; told at each step."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda steps=1: None
        return
    if not stream.isatty():
        yield lambda steps=1: None
        return
    with Progress(console=Console(file=stream), transient=True) as progress:
        task = progress.add_task("simulating", total=total)
        waiting = 0

        def tell(steps: int = 1) -> None:
            nonlocal waiting
            waiting += steps
            if waiting >= stride:
                progress.advance(task, waiting)
                waiting = 0

        yield tell
