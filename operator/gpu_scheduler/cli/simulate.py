"""``gpu-scheduler simulate``."""

import sys
from pathlib import Path
from typing import Any

import click

from gpu_scheduler.cli.ending import one_line


@click.command("simulate")
@click.option(
    "--nodes",
    type=click.Path(path_type=Path),
    help="Trace: CSV file of nodes, may be compressed with xz.",
)
@click.option(
    "--pods",
    type=click.Path(path_type=Path),
    help="Trace: CSV file of pods, may be compressed with xz.",
)
@click.option(
    "--policy",
    default="fragmentation",
    show_default=True,
    help="fragmentation, best-fit, spread or fgd.",
)
@click.option("--output", "-o", default="table", show_default=True, help="table or json.")
@click.option("--seed", type=int, help="Trace: decides every random choice; 42 if not given.")
@click.option(
    "--arrive",
    type=click.FloatRange(0.01, 10),
    help="Trace: demand that arrives, in clusters; 1.3 if not given.",
)
@click.option(
    "--releasing",
    type=click.FloatRange(0.01, 10),
    help="Trace: let pods come and go at this load instead.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    help="Trace: draw unallocated GPU over demand: .png, .svg or .pdf.",
)
@click.option(
    "--add",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Cluster: what if these objects were there too; YAML, may be repeated.",
)
@click.option(
    "--remove", multiple=True, help="Cluster: what if this were gone; KIND/NAME, may be repeated."
)
@click.option(
    "--operator-namespace", help="Cluster: where the operator runs; default gpu-scheduler."
)
@click.option(
    "--consolidation", is_flag=True, help="Cluster: pods may be moved together; see the chart."
)
@click.option("--context", help="Cluster: of the kubeconfig; default: its current one.")
@click.option(
    "--workload", help="Workload: random, day, sweep, trace (with --nodes, --pods), or a file."
)
@click.option(
    "--load", type=click.FloatRange(0.01, 10), help="Workload: work that arrives; 0.9 if not given."
)
@click.option("--hours", type=click.FloatRange(0.01, 1000), help="Workload: how long is played.")
@click.option(
    "--checkpoint-seconds",
    type=click.FloatRange(1, 86400),
    help="Workload: every other job saves so often.",
)
@click.option(
    "--preemption",
    multiple=True,
    help="fair, strict, at-once or never; of a workload several are compared.",
)
@click.option(
    "--guarantee-seconds", type=click.FloatRange(0, 86400), help="Of fair rules, as in the chart."
)
@click.option(
    "--patience-seconds", type=click.FloatRange(0, 86400), help="Of fair rules, as in the chart."
)
@click.option(
    "--min-runtime-seconds",
    type=click.FloatRange(0, 604800),
    help="Of fair rules, as in the chart.",
)
@click.option(
    "--share-window-seconds",
    type=click.FloatRange(1, 86400),
    help="Of fair rules, as in the chart.",
)
def command(**given: Any) -> None:
    """Try what the planner would do; nothing is changed.

    With --workload on work of several projects: what evictions cost, and who waits how long. With
    --nodes and --pods alone on a trace: how much GPU stays unused. Without all three on the cluster
    that kubectl points at: what would start and where, what would give way, and why the rest waits.
    """
    from gpu_scheduler.simulate.arguments import Arguments, run

    with one_line():
        click.echo(run(Arguments(**given), sys.stderr))
