"""Commands and checks that are imported when they run.

So ``--help`` and completion, which need names and one line of each, are quick, and a part of the
commands can be installed without the libraries of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command or a check stands.

    Attributes:
        module: its module.
        help: one line, as in a list of them.
        section: under which heading it is listed there.
        name: what it is called in its module.
    """

    module: str
    help: str
    section: str = "Commands"
    name: str = "command"

    def load(self) -> Any:
        """The thing itself."""
        return getattr(import_module(self.module), self.name)


class LazyGroup(click.Group):
    """A group whose commands stand in modules of their own."""

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, Place],
        aliases: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        """``places``: by name, in the order of the help; ``aliases``: other names of some."""
        super().__init__(*args, **more)
        self._places = places
        self._aliases = aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of the table."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself; None: there is none of this name."""
        place = self._places.get(self._aliases.get(cmd_name, cmd_name))
        if place is None:
            return None
        command = place.load()
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        """Commands that begin so, of which none is imported, and options."""
        from click.shell_completion import CompletionItem

        names = (name for name in self._places if name.startswith(incomplete))
        found = [CompletionItem(name, help=self._places[name].help) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, of which none is imported."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, place in self._places.items():
            sections.setdefault(place.section, []).append((name, place.help))
        for section, lines in sections.items():
            with formatter.section(section):
                formatter.write_dl(lines)
