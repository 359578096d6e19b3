"""The command line: ``gpu-scheduler operator`` runs a replica, ``gpu-scheduler agent`` an agent.

What a command needs is imported when it runs, so that ``--help`` and ``version`` are quick and the
command line can be installed without the operator's dependencies, the agent without kopf.
"""

import gc
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from gpu_scheduler import __version__
from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.sweeps.commands.app import app as sweep_app

if TYPE_CHECKING:
    from gpu_scheduler.kube.connection import Connection


class HasLogLevel(Protocol):
    """Settings of a program that logs."""

    @property
    def log_level(self) -> str:
        """The least that is logged."""


S = TypeVar("S", bound=HasLogLevel)

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def gpu_scheduler() -> None:
    """A fractional GPU scheduler for Kubernetes."""


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


@app.command()
def operator(
    json_logs: Annotated[bool, typer.Option(help="One JSON object per log line.")] = False,
) -> None:
    """Run a replica of the operator; settings come from GPUSCHED_* variables."""
    import uvloop

    from gpu_scheduler.replica import run
    from gpu_scheduler.runtime.settings import load

    settings, connection = _configured(load, json_logs=json_logs)
    # A full collection over a large state would stop the loop for most of a second.
    gc.set_threshold(50_000, 20, 100)
    raise typer.Exit(uvloop.run(run(settings, connection)))


app.add_typer(sweep_app, name="sweep")

agent_app = typer.Typer(pretty_exceptions_enable=False, invoke_without_command=True)
app.add_typer(agent_app, name="agent")


@agent_app.callback()
def agent(
    context: typer.Context,
    json_logs: Annotated[bool, typer.Option(help="One JSON object per log line.")] = False,
) -> None:
    """Run this node's agent; settings come from GPUSCHED_AGENT_* variables."""
    if context.invoked_subcommand is not None:
        return
    import asyncio

    from gpu_scheduler.agent.process import run
    from gpu_scheduler.agent.settings import load

    settings, connection = _configured(load, json_logs=json_logs)
    raise typer.Exit(asyncio.run(run(settings, connection)))


@agent_app.command("self-test")
def self_test(
    output: Annotated[Path | None, typer.Option(help="Write the verdict to this file too.")] = None,
) -> None:
    """Try every layer that could hold a container to its memory cap; say which one did, as JSON.

    Ends with 0 whatever came of it, so that it never keeps a pod from starting.
    """
    from gpu_scheduler.agent import selftest

    verdict = selftest.self_test()
    typer.echo(verdict.to_json())
    if output is not None:
        output.write_text(verdict.to_json())


@app.command()
def render(
    filename: Annotated[
        list[str],
        typer.Option("--filename", "-f", help="Manifests, YAML or JSON; - is standard input."),
    ],
    image: Annotated[
        str, typer.Option(help="Image that brings the library which keeps memory caps.")
    ] = f"gpu-scheduler:{__version__}",
    isolation: Annotated[
        str, typer.Option(help="Of pods that do not say: interposer or framework.")
    ] = "interposer",
    runtime_class: Annotated[
        str, typer.Option(help="Of pods that name none; empty where the cluster has none.")
    ] = "nvidia",
    compat: Annotated[
        Compat | None,
        typer.Option(help="Whose keys the pods may ask with beside ours, as their namespace says."),
    ] = None,
) -> None:
    """Print manifests with the pods that ask for a share of a GPU made ours; nothing is sent.

    For clusters without the admission policy that does the same, and to see what it does.
    """
    from gpu_scheduler.manifests.command import run

    raise typer.Exit(run(filename, image, isolation, runtime_class, compat))


@app.command()
def simulate(
    nodes: Annotated[
        Path | None, typer.Option(help="Trace: CSV file of nodes, may be compressed with xz.")
    ] = None,
    pods: Annotated[
        Path | None, typer.Option(help="Trace: CSV file of pods, may be compressed with xz.")
    ] = None,
    policy: Annotated[str, typer.Option(help="fragmentation, best-fit, spread or fgd.")] = (
        "fragmentation"
    ),
    output: Annotated[str, typer.Option("--output", "-o", help="table or json.")] = "table",
    seed: Annotated[
        int | None, typer.Option(help="Trace: decides every random choice; 42 if not given.")
    ] = None,
    arrive: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=10, help="Trace: demand that arrives, in clusters; 1.3 if not given."
        ),
    ] = None,
    releasing: Annotated[
        float | None,
        typer.Option(min=0.01, max=10, help="Trace: let pods come and go at this load instead."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Trace: draw unallocated GPU over demand: .png, .svg or .pdf."),
    ] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(help="Cluster: what if these objects were there too; YAML, may be repeated."),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(help="Cluster: what if this were gone; KIND/NAME, may be repeated."),
    ] = None,
    operator_namespace: Annotated[
        str | None, typer.Option(help="Cluster: where the operator runs; default gpu-scheduler.")
    ] = None,
    consolidation: Annotated[
        bool,
        typer.Option("--consolidation", help="Cluster: pods may be moved together; see the chart."),
    ] = False,
    context: Annotated[
        str | None, typer.Option(help="Cluster: of the kubeconfig; default: its current one.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="Workload: random, day, sweep, trace (with --nodes, --pods), or a file."),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(min=0.01, max=10, help="Workload: work that arrives; 0.9 if not given."),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.01, max=1000, help="Workload: how long is played.")
    ] = None,
    checkpoint_seconds: Annotated[
        float | None,
        typer.Option(min=1, max=86400, help="Workload: every other job saves so often."),
    ] = None,
    preemption: Annotated[
        list[str] | None,
        typer.Option(help="fair, strict, at-once or never; of a workload several are compared."),
    ] = None,
    guarantee_seconds: Annotated[
        float | None, typer.Option(min=0, max=86400, help="Of fair rules, as in the chart.")
    ] = None,
    patience_seconds: Annotated[
        float | None, typer.Option(min=0, max=86400, help="Of fair rules, as in the chart.")
    ] = None,
    min_runtime_seconds: Annotated[
        float | None, typer.Option(min=0, max=604800, help="Of fair rules, as in the chart.")
    ] = None,
    share_window_seconds: Annotated[
        float | None, typer.Option(min=1, max=86400, help="Of fair rules, as in the chart.")
    ] = None,
) -> None:
    """Try what the planner would do; nothing is changed.

    With --workload on work of several projects: what evictions cost, and who waits how long. With
    --nodes and --pods alone on a trace: how much GPU stays unused. Without all three on the cluster
    that kubectl points at: what would start and where, what would give way, and why the rest waits.
    """
    from gpu_scheduler.simulate.arguments import Arguments, run

    of_trace = seed, arrive, releasing, plot
    of_cluster = add, remove, operator_namespace, consolidation
    arguments = Arguments(
        nodes,
        pods,
        policy,
        output,
        *of_trace,
        *of_cluster,
        context=context,
        workload=workload,
        load=load,
        hours=hours,
        checkpoint_seconds=checkpoint_seconds,
        preemption=preemption,
        guarantee_seconds=guarantee_seconds,
        patience_seconds=patience_seconds,
        min_runtime_seconds=min_runtime_seconds,
        share_window_seconds=share_window_seconds,
    )
    try:
        typer.echo(run(arguments, sys.stderr))
    except ValueError as error:
        typer.echo(f"gpu-scheduler: {error}", err=True)
        raise typer.Exit(2) from None


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        import json

        fields = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def _configured(load: Callable[[], S], *, json_logs: bool) -> "tuple[S, Connection]":
    """Settings and the way to the API server; ends the program where one of them is wrong."""
    from gpu_scheduler.kube import config

    try:
        settings, connection = load(), config.load()
    except (ValueError, config.ConfigError) as error:
        typer.echo(f"gpu-scheduler: {error}", err=True)
        raise typer.Exit(2) from None
    _log_to_stderr(settings.log_level, json_lines=json_logs)
    return settings, connection


def _log_to_stderr(level: str, *, json_lines: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonFormatter() if json_lines else plain)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("kopf").setLevel(logging.WARNING)


if __name__ == "__main__":
    app()
