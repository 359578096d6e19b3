"""Command lines that were copied from a PDF or a chat, where hyphens have become dashes.

U+2013 and U+2014 at the start of an option count as hyphens, and one that stands for ``--`` does,
too. What follows ``--`` is the program's, and so is the value of an option: neither is touched.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

import click

_DASHES = "\u2013\u2014"
_ENDS = ("--", "\u2014", "\u2013\u2013")  # of the options
_VALUE_MAY_LACK = frozenset({"--dry-run"})  # or it stands behind "="
BEHIND = "gpu_scheduler.behind"
"""Key in a context's ``meta``: what stood behind ``--``; None: there was no ``--``."""


class PastedCommand(click.Command):
    """A command that takes dashes for hyphens, and keeps what follows ``--`` for itself."""

    def __init__(
        self, *args: Any, other_names: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        """``other_names``: of options, as others call them, that no help shows."""
        super().__init__(*args, **more)
        self._other_names = other_names or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See ``click.Command``."""
        mine, behind = split(args, self.params, self._other_names)
        for arg in args:
            if not _is_text(arg):
                raise click.UsageError(f"{arg!r} is not UTF-8")
        ctx.meta[BEHIND] = behind
        return super().parse_args(ctx, mine)


def split(
    args: Sequence[str], params: Sequence[click.Parameter], other_names: Mapping[str, str]
) -> tuple[list[str], list[str] | None]:
    """The options with hyphens, and what follows ``--``; None where there is no ``--``."""
    known = {name: each for each in params for name in each.opts}
    known |= {other: known[name] for other, name in other_names.items()}
    mine: list[str] = []
    is_value = False
    for index, arg in enumerate(args):
        if arg in _ENDS and not is_value:
            return mine, list(args[index + 1 :])
        if not is_value:
            name, equals, value = hyphenated(arg, known).partition("=")
            arg = f"{other_names.get(name, name)}{equals}{value}"
        mine.append(arg)
        is_value = not is_value and takes_value(known.get(mine[-1]))
    return mine, None


def hyphenated(arg: str, known: Container[str]) -> str:
    """An argument with hyphens at its start where it had dashes."""
    rest = arg.lstrip("-" + _DASHES)
    start = arg[: len(arg) - len(rest)]
    if not rest or not set(start) & set(_DASHES):
        return arg
    name = rest.partition("=")[0]
    # A single dash may have been two hyphens: -g is known, and so is --gpu.
    short = f"-{name}" in known or (f"--{name}" not in known and f"-{rest[0]}" in known)
    return f"-{rest}" if short else f"--{rest}"


def takes_value(param: click.Parameter | None) -> bool:
    """Whether the argument behind this option is its value."""
    if not isinstance(param, click.Option) or param.is_flag or param.count:
        return False
    return not _VALUE_MAY_LACK.intersection(param.opts)


def _is_text(arg: str) -> bool:
    try:
        arg.encode()
    except UnicodeEncodeError:
        return False
    return True
