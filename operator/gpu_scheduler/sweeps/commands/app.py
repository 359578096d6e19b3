"""The commands below ``gpu-scheduler sweep``. What they need is imported when they run."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Output = Annotated[str, typer.Option("--output", "-o", help="table, csv or json.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Default: that of the kubeconfig.")
]
Context = Annotated[
    str | None, typer.Option("--context", help="Of the kubeconfig; default: its current one.")
]
Job = Annotated[str, typer.Argument(help="Name of the GPUJob.")]


@app.callback()
def sweep() -> None:
    """Look at hyperparameter searches."""


@app.command()
def preview(
    file: Annotated[Path, typer.Option("--filename", "-f", help="YAML file with the GPUJob.")],
    first: Annotated[int, typer.Option("-n", min=1, help="How many trials to show.")] = 20,
    output: Output = "table",
) -> None:
    """Show the parameters of the first trials; needs no cluster."""
    from gpu_scheduler.sweeps.commands import manifest
    from gpu_scheduler.sweeps.commands.preview import footer
    from gpu_scheduler.sweeps.commands.preview import preview as sheet_of

    def show() -> str:
        found = manifest.load(file)
        text = sheet_of(found, first).render(output)
        return f"{text}\n\n{footer(found, first)}" if output == "table" else text

    _say(show)


@app.command()
def trials(
    job: Job, namespace: Namespace = None, context: Context = None, output: Output = "table"
) -> None:
    """Show all trials that have ended: state, results and parameters."""
    from gpu_scheduler.sweeps.commands import cluster

    _say(lambda: cluster.fetch(job, namespace, context).trials().render(output))


@app.command()
def best(
    job: Job, namespace: Namespace = None, context: Context = None, output: Output = "table"
) -> None:
    """Show the best trial and its parameters."""
    from gpu_scheduler.sweeps.commands import cluster

    _say(lambda: cluster.fetch(job, namespace, context).best(output))


@app.command()
def plot(
    job: Job,
    namespace: Namespace = None,
    context: Context = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="JOB.png, or another .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Draw the best value so far and parallel coordinates of the trials."""
    from gpu_scheduler import picture
    from gpu_scheduler.sweeps.commands import cluster, plot

    def show() -> str:
        path = output or Path(f"{job}.png")
        picture.check(path)
        plot.draw(cluster.fetch(job, namespace, context), path)
        return str(path)

    _say(show)


def _say(show: Callable[[], str]) -> None:
    try:
        typer.echo(show())
    except ValueError as error:
        typer.echo(f"gpu-scheduler: {error}", err=True)
        raise typer.Exit(2) from None
