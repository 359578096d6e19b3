"""``kubectl gpu top``: who holds the GPUs, by device, node, job or project."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gpu_scheduler.cli.shown import output_option, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster

F = TypeVar("F", bound=Callable[..., Any])


def _shown(command: F) -> F:
    """The options of all of them."""
    found: Any = of_cluster(command)
    for add in (
        click.option(
            "--interval",
            type=click.FloatRange(0.5, 3600),
            default=2.0,
            show_default=True,
            help="Seconds between two looks.",
        ),
        click.option("--watch", "-w", is_flag=True, help="Look again and again, until Ctrl-C."),
        output_option("table", "wide", "json", "yaml"),
    ):
        found = add(found)
    return found  # type: ignore[no-any-return]


@click.group("top", no_args_is_help=True)
def command() -> None:
    """Who holds the GPUs, and what of it is used.

    Utilisation is the share of time in which kernels of the holders ran: a mean of five minutes, as
    GPUNodes tell it, or else that of the last ten seconds, as GPUUsage does. Used is that time, at
    most the share.
    """


@command.command("gpus")
@_shown
def gpus(where: ClusterOptions, output: str, watch: bool, interval: float) -> None:
    """A bar for each GPU: how much of it is held, by whom, and what of that is used."""
    _look("gpus", where, output, watch, interval)


@command.command("nodes")
@_shown
def nodes(where: ClusterOptions, output: str, watch: bool, interval: float) -> None:
    """A bar for each node."""
    _look("nodes", where, output, watch, interval)


@command.command("jobs")
@_shown
def jobs(where: ClusterOptions, output: str, watch: bool, interval: float) -> None:
    """Who holds most, and what of it is used: GPUJobs, and other workloads with a share.

    BUSY is the share of time in which its kernels ran, now and since it began; IDLE how long none
    has; ADVICE the rule that kubectl gpu advise explains.
    """
    _look("jobs", where, output, watch, interval)


@command.command("projects")
@_shown
def projects(where: ClusterOptions, output: str, watch: bool, interval: float) -> None:
    """A bar for each project: what it holds of its quota, and uses."""
    _look("projects", where, output, watch, interval)


def _look(what: str, where: ClusterOptions, output: str, watch: bool, interval: float) -> None:
    import sys
    import time
    from datetime import UTC, datetime

    from gpu_scheduler.cli.holders import lines as top_lines
    from gpu_scheduler.cli.holders import read as top_read

    with where.cluster() as cluster:
        while True:
            view = top_read.read(cluster, projects=what == "projects")
            if watch and sys.stdout.isatty():
                click.clear()
            top_lines.show(what, view, output, datetime.now(UTC))
            if not watch:
                return
            try:
                time.sleep(interval)
            except KeyboardInterrupt:
                return
            if output in ("table", "wide") and not sys.stdout.isatty():
                say()
