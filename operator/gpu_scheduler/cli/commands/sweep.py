"""The commands below ``kubectl gpu sweep``. What they need is imported when they run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_scheduler.cli.ending import Failed, one_line
from gpu_scheduler.cli.lazy import CommandGroup
from gpu_scheduler.cli.printed_table import PrintedTable
from gpu_scheduler.cli.shown import output_option, print_table, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

if TYPE_CHECKING:
    from gpu_scheduler.sweeps.commands.column_table import ColumnTable as Trials
    from gpu_scheduler.sweeps.commands.record import SweepOutcomes


@contextmanager
def _record(where: ClusterOptions, job: str) -> "Iterator[SweepOutcomes]":
    """A sweep and its results; a sweep without any is no mistake of who typed the command."""
    from gpu_scheduler.sweeps.commands import cluster as read
    from gpu_scheduler.sweeps.commands.manifest import ManifestError
    from gpu_scheduler.sweeps.commands.record import NoResultsError

    try:
        with where.cluster() as cluster:
            found = read.fetch(cluster.client, cluster.namespace, job)
        yield found
    except (ManifestError, NoResultsError) as error:
        raise Failed(str(error)) from None


def _print(table: "Trials", output: str) -> None:
    if output != "table":
        return click.echo(table.render(output))  # for a program: as it is
    heading, *rows = table.texts()
    return print_table(PrintedTable(heading, list(rows)))


@click.group("sweep", cls=CommandGroup, no_args_is_help=True)
def command() -> None:
    """Look at hyperparameter searches."""


@command.command()
@click.option(
    "--filename",
    "-f",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    help="YAML file with the GPUJob.",
)
@click.option(
    "--first",
    "-n",
    "first",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many trials to show.",
)
@output_option("table", "csv", "json")
def preview(file: Path, first: int, output: str) -> None:
    """Show the parameters of the first trials; needs no cluster."""
    with one_line():
        from gpu_scheduler.sweeps.commands import manifest
        from gpu_scheduler.sweeps.commands.preview import footer
        from gpu_scheduler.sweeps.commands.preview import preview as table_of

        found = manifest.load(file)
        _print(table_of(found, first), output)
        if output == "table":
            say(f"\n{footer(found, first)}")


@command.command()
@click.argument("job")
@click.option("--sort-by", metavar="COLUMN", help="Such as val_loss; numbers by their size.")
@output_option("table", "csv", "json")
@of_cluster
def trials(where: ClusterOptions, job: str, sort_by: str | None, output: str) -> None:
    """Show all trials that have started or ended: state, results and parameters."""
    with _record(where, job) as record:
        table = record.trials()
        _print(table.sorted_by(sort_by) if sort_by else table, output)


@command.command()
@click.argument("job")
@output_option("table", "csv", "json")
@of_cluster
def best(where: ClusterOptions, job: str, output: str) -> None:
    """Show the best trial and its parameters."""
    with _record(where, job) as record:
        table = record.best()
        if output == "json":
            print_value(table.objects()[0], output)
        else:
            _print(table, output)


@command.command()
@click.argument("job")
@click.option("--output-file", type=click.Path(path_type=Path), help="Else standard output.")
@output_option("csv", "json")
@of_cluster
def export(where: ClusterOptions, job: str, output_file: Path | None, output: str) -> None:
    """Write all trials with all digits, for another program."""
    if output_file is not None and not output_file.parent.is_dir():
        raise ValueError(f"--output-file {output_file}: there is no folder {output_file.parent}")
    with _record(where, job) as record:
        text = record.trials().render(output) + "\n"
    if output_file is None:
        return click.echo(text, nl=False)
    try:
        output_file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ValueError(f"--output-file {output_file}: {error.strerror or error}") from None
    return say(output_file)


@command.command()
@click.argument("job")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="JOB.png, or another .png, .svg or .pdf.",
)
@of_cluster
def plot(where: ClusterOptions, job: str, output: Path | None) -> None:
    """Draw the best value so far and parallel coordinates of the trials."""
    from gpu_scheduler import picture

    path = output or Path(f"{job}.png")
    picture.check(path)
    from gpu_scheduler.sweeps.commands.plot import draw

    with _record(where, job) as record:
        draw(record, path)
    say(path)
