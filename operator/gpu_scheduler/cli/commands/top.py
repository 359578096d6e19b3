"""``kubectl gpu top``: who holds the GPUs, by device, node, job or project."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_scheduler.cli.lazy import CommandGroup
from gpu_scheduler.cli.shown import output_option, print_table, print_value, say
from gpu_scheduler.cli.where import ClusterOptions, of_cluster, operator_namespace_option

if TYPE_CHECKING:
    from datetime import datetime

    from gpu_scheduler.cli.cluster_access import ClusterAccess

    Show = Callable[[ClusterAccess, datetime], None]

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


@click.group("top", cls=CommandGroup, no_args_is_help=True)
def command() -> None:
    """Who holds the GPUs, and what of it is used.

    Utilisation is the share of time in which kernels of the holders ran: a mean of five minutes, as
    GPUNodes tell it, or else that of the last ten seconds, as GPUUsage does. Used is that time, at
    most the share.
    """


@command.command("gpus")
@click.option(
    "--processes",
    is_flag=True,
    help="The processes on them instead, with their containers; for who may exec in agents' pods.",
)
@operator_namespace_option
@_shown
def gpus(
    where: ClusterOptions,
    output: str,
    watch: bool,
    interval: float,
    processes: bool,
    operator_namespace: str,
) -> None:
    """A bar for each GPU: how much of it is held, by whom, and what of that is used."""
    if not processes:
        return _look("gpus", where, output, watch, interval)

    def show(cluster: "ClusterAccess", now: "datetime") -> None:
        from gpu_scheduler.cli.holders import processes as of_processes
        from gpu_scheduler.cli.one_pod.kubectl import output_of

        view = of_processes.read(cluster, operator_namespace, partial(output_of, where))
        if output in ("json", "yaml"):
            return print_value(view.to_json(), output)
        print_table(of_processes.table(view), wide=output == "wide")
        for said in view.missing:
            say(said)
        return None

    return _again(show, where, output, watch, interval)


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
    def show(cluster: "ClusterAccess", now: "datetime") -> None:
        from gpu_scheduler.cli.holders import lines as top_lines
        from gpu_scheduler.cli.holders import read as top_read

        rooms = what in ("gpus", "nodes")
        view = top_read.read(cluster, projects=what == "projects", rooms=rooms)
        top_lines.show(what, view, output, now)

    _again(show, where, output, watch, interval)


def _again(show: "Show", where: ClusterOptions, output: str, watch: bool, interval: float) -> None:
    """Show it once, or until Ctrl-C."""
    import sys
    import time
    from datetime import UTC, datetime

    with where.cluster() as cluster:
        while True:
            if watch and sys.stdout.isatty():
                click.clear()
            show(cluster, datetime.now(UTC))
            if not watch:
                return
            try:
                time.sleep(interval)
            except KeyboardInterrupt:
                return
            if output in ("table", "wide") and not sys.stdout.isatty():
                say()
