"""The commands below ``gpu-scheduler sweep``. What they need is imported when they run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from gpu_scheduler.cli.ending import one_line

F = TypeVar("F", bound=Callable[..., Any])

_output = click.option(
    "--output", "-o", default="table", show_default=True, help="table, csv or json."
)


def _of_job(command: F) -> F:
    """A GPUJob of the cluster that kubectl points at."""
    for add in (
        click.option("--context", help="Of the kubeconfig; default: its current one."),
        click.option("--namespace", "-n", help="Default: that of the kubeconfig."),
        click.argument("job"),
    ):
        command = add(command)
    return command


@click.group("sweep", no_args_is_help=True)
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
    "-n",
    "first",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many trials to show.",
)
@_output
def preview(file: Path, first: int, output: str) -> None:
    """Show the parameters of the first trials; needs no cluster."""
    from gpu_scheduler.sweeps.commands import manifest
    from gpu_scheduler.sweeps.commands.preview import footer
    from gpu_scheduler.sweeps.commands.preview import preview as sheet_of

    with one_line():
        found = manifest.load(file)
        text = sheet_of(found, first).render(output)
        click.echo(f"{text}\n\n{footer(found, first)}" if output == "table" else text)


@command.command()
@_of_job
@_output
def trials(job: str, namespace: str | None, context: str | None, output: str) -> None:
    """Show all trials that have ended: state, results and parameters."""
    from gpu_scheduler.sweeps.commands import cluster

    with one_line():
        click.echo(cluster.fetch(job, namespace, context).trials().render(output))


@command.command()
@_of_job
@_output
def best(job: str, namespace: str | None, context: str | None, output: str) -> None:
    """Show the best trial and its parameters."""
    from gpu_scheduler.sweeps.commands import cluster

    with one_line():
        click.echo(cluster.fetch(job, namespace, context).best(output))


@command.command()
@_of_job
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    help="JOB.png, or another .png, .svg or .pdf.",
)
def plot(job: str, namespace: str | None, context: str | None, output: Path | None) -> None:
    """Draw the best value so far and parallel coordinates of the trials."""
    from gpu_scheduler import picture
    from gpu_scheduler.sweeps.commands import cluster
    from gpu_scheduler.sweeps.commands.plot import draw

    with one_line():
        path = output or Path(f"{job}.png")
        picture.check(path)
        draw(cluster.fetch(job, namespace, context), path)
        click.echo(path)
