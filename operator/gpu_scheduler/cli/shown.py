"""How results are printed: tables for people; JSON, YAML and names for programs.

A table goes as wide as it is into a pipe or a file, and fits a terminal: columns of text are folded
there, nothing is cut off. Colour only on a terminal, never with NO_COLOR.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_scheduler.cli.printed_table import PrintedTable, fitted

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("table", "wide", "json", "yaml", "name")

_COLOURS = {
    "Running": "green",
    "Succeeded": "green",
    "Pending": "yellow",
    "Suspended": "yellow",
    "Failed": "red",
}


# Nobody's text may move the cursor, or turn around what stands behind it.
_CONTROL = {code: f"^{chr(code ^ 64)}" for code in (*range(32), 127) if chr(code) not in "\n\t"}
_CONTROL |= {code: f"\\u{code:04x}" for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F))}
_CONTROL |= {code: f"\\u{code:04x}" for code in range(0x2066, 0x206A)}


def plain(text: str) -> str:
    """A text as it is shown: what would command the terminal is spelt, as kubectl does."""
    return text.translate(_CONTROL)


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text for people."""
    click.echo(plain(str(text)), err=err, nl=nl)


def note(text: object) -> None:
    """Tell people what a program that reads the output need not see."""
    say(text, err=True)


def output_option(*formats: str) -> Callable[[F], F]:
    """``-o``, given as ``output``; without arguments all of ``FORMATS``."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(formats or FORMATS),
        default=(formats or FORMATS)[0],
        show_default=True,
        help="How it is printed.",
    )


no_headers_option = click.option("--no-headers", is_flag=True, help="A table without its heading.")


def console(*, error: bool = False) -> "Console":
    """Where tables are printed."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, markup=False, emoji=False)


def print_table(table: PrintedTable, *, wide: bool = False, headers: bool = True) -> None:
    """Print a table; without ``wide`` a narrow terminal may cost it columns (see ``fitted``)."""
    table = table.cut(wide=wide)
    if not sys.stdout.isatty():
        say("\n".join(table.lines(headers=headers)))
        return
    from rich.table import Table
    from rich.text import Text

    table = fitted(table, console().width, all_columns=wide)
    printed = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=headers)
    for name in table.columns:
        printed.add_column(name, header_style="bold", overflow="fold")
    for row in table.rows:
        printed.add_row(*(Text(plain(cell), style=_COLOURS.get(cell, "")) for cell in row))
    console().print(printed)


def print_objects(
    objects: Sequence[Mapping[str, Any]],
    output: str,
    table: Callable[[], PrintedTable],
    *,
    headers: bool = True,
    one: bool = False,
) -> None:
    """Print objects of the API server as was asked.

    Args:
        objects: with apiVersion and kind.
        output: one of ``FORMATS``.
        table: theirs.
        headers: whether the table has a heading.
        one: a single object was asked for, by its name: no List around it.
    """
    if output == "name":
        for each in objects:
            say(name_of(each))
    elif output in ("json", "yaml"):
        body: Any = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        print_value(objects[0] if one else body, output)
    else:
        print_table(table(), wide=output == "wide", headers=headers)


def print_value(value: Any, output: str) -> None:
    """Print a value as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(value, indent=2))
        return
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    click.echo(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True), nl=False)


def name_of(body: Mapping[str, Any]) -> str:
    """As ``kubectl -o name``: kind, group and name."""
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    kind = str(body["kind"]).lower() + (f".{group}" if group else "")
    return f"{kind}/{body['metadata']['name']}"
