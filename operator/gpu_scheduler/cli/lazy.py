"""A group of commands that are imported when they run.

So ``--help`` and completion, which need names and one line of each, are quick, and a part of the
commands can be installed without the libraries of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command stands.

    Attributes:
        module: its module, in which it is called ``command``.
        help: its first line, as in a list of commands.
    """

    module: str
    help: str


class LazyGroup(click.Group):
    """A group whose commands stand in modules of their own."""

    def __init__(self, *args: Any, places: Mapping[str, Place], **more: Any) -> None:
        """``places``: by name, in the order of the help."""
        super().__init__(*args, **more)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of the table."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself; None: there is none of this name."""
        place = self._places.get(cmd_name)
        if place is None:
            return None
        command = import_module(place.module).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, of which none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self._places.items()])
