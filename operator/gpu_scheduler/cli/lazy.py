"""Commands and checks that are imported when they run.

So ``--help`` and completion, which need names and one line of each, are quick, and a part of the
commands can be installed without the libraries of the others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from gpu_scheduler.cli.ending import end
from gpu_scheduler.cli.habits import InsteadError, nearest

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


class CommandGroup(click.Group):
    """A group that names the command that was meant where there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See ``click.Group``."""
        name = args[0]
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None and name[:1] != "-":
            meant = nearest(name, self.list_commands(ctx))
            path = ctx.command_path
            found = f"did you mean {path} {meant}?" if meant else f"{path} --help lists them"
            end(f"there is no command {path} {name}; {found}", 2)
        return super().resolve_command(ctx, args)


class LazyGroup(CommandGroup):
    """A group whose commands stand in modules of their own."""

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, Place],
        translated: Callable[[Sequence[str]], list[str]] = list,
        **more: Any,
    ) -> None:
        """Prepare.

        Args:
            args: of ``click.Group``.
            places: by name, in the order of the help.
            translated: words of other programs into ours.
            more: of ``click.Group``.
        """
        super().__init__(*args, **more)
        self._places = places
        self._translated = translated

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See ``click.Command``."""
        if not ctx.resilient_parsing:
            try:
                args = self._translated(args)
            except InsteadError as error:
                end(str(error), 2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of the table."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command itself; None: there is none of this name."""
        place = self._places.get(cmd_name)
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
