"""``kubectl gpu check``: what the installation lacks, and what mends it."""

import sys
from typing import TYPE_CHECKING

import click

from gpu_scheduler.cli.checks.table import CHECKS, complete, findings
from gpu_scheduler.cli.shown import output_option, plain, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.cli.checks.facts import Check

_COLOURS = {"OK": "green", "MISSING": "bold red", "WARN": "yellow", "UNKNOWN": "dim"}


class _CheckCommand(click.Command):
    """Lists the checks below its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Checks"):
            formatter.write_dl([(name, check.help) for name, check in CHECKS.items()])


@click.command("check", cls=_CheckCommand)
@click.option(
    "--operator-namespace",
    metavar="NAME",
    help="Where the operator runs; else where its Deployment is found.",
)
@output_option("table", "json", "yaml")
@of_cluster
@click.pass_context
def command(
    context: click.Context, where: ClusterOptions, operator_namespace: str | None, output: str
) -> None:
    """Look whether everything is there that the scheduler needs; nothing is changed.

    Below what is not as it should be stands the command that mends it. Ends with 1 if something is
    MISSING; WARN works, and is perhaps not what you want; UNKNOWN may not be read by you.
    """
    from gpu_scheduler.cli.checks.reading import read

    with where.cluster() as cluster:
        found = findings(read(cluster, operator_namespace))
    if output == "table":
        _print(found)
    else:
        print_value(
            {
                "complete": complete(found),
                "checks": [
                    {
                        "state": each.state.value,
                        "name": each.name,
                        "what": each.what,
                        "mend": each.mend or None,
                    }
                    for each in found
                ],
            },
            output,
        )
    context.exit(0 if complete(found) else 1)


def _print(found: "list[Check]") -> None:
    """A line for each, folded on a terminal; commands are not, so that they can be copied."""
    from textwrap import wrap

    terminal = sys.stdout.isatty()
    width = max(len(each.name) for each in found)
    indent = " " * 9
    for each in found:
        text = plain(f"{each.name.ljust(width)}  {each.what}")
        if not terminal:
            say(f"{each.state.value:<7}  {text}")
            if each.mend:
                say(f"{indent}{each.mend}")
            continue
        from rich.text import Text

        from gpu_scheduler.cli.shown import console

        out = console()
        hanging = indent + " " * (width + 2)
        lines = wrap(text, out.width, initial_indent=indent, subsequent_indent=hanging)
        first = lines[0][len(indent) :] if lines else ""
        state = (f"{each.state.value:<7}  ", _COLOURS[each.state.value])
        out.print(Text.assemble(state, first), soft_wrap=True)
        for line in lines[1:]:
            out.print(Text(line), soft_wrap=True)
        if each.mend:
            out.print(Text(plain(f"{indent}{each.mend}"), "cyan"), soft_wrap=True)
