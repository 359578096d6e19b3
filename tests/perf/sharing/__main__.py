"""What evictions cost work of several projects: ``python -m tests.perf.sharing --help``.

``workload`` says what is played, ``workloads`` makes some, ``player`` plays one through the
operator's own planner; ``counting`` and ``figures`` say who waited, who was evicted, and what it
cost.
"""

import sys
from pathlib import Path

import click
from tests.perf.options import HELP, finite, plot_option, seed_option, trace_options
from tests.perf.sharing.command import ComparisonRequest, as_json, as_table, compare

from gpu_scheduler.cli.ending import one_line
from gpu_scheduler.cli.rules import EvictionOptions, rules_options
from gpu_scheduler.cli.shown import output_option, say


@click.command("python -m tests.perf.sharing", context_settings=HELP)
@click.argument("workload", metavar="WORKLOAD")
@seed_option
@click.option(
    "--load",
    type=click.FloatRange(0.01, 10),
    default=0.9,
    show_default=True,
    help="Work that arrives, of what the cluster can do.",
)
@click.option("--hours", type=click.FloatRange(0.01, 1000), help="How long is played.")
@click.option(
    "--checkpoint-seconds",
    type=click.FloatRange(1, 86400),
    help="Of random: every other job saves so often.",
)
@trace_options("Of trace: CSV file of {}.")
@rules_options("fair", "strict")
@plot_option("what is lost over delays and goodput")
@output_option("table", "json")
def command(
    workload: str,
    seed: int,
    load: float,
    hours: float | None,
    checkpoint_seconds: float | None,
    nodes: Path | None,
    pods: Path | None,
    rules: EvictionOptions,
    plot: Path | None,
    output: str,
) -> None:
    """Play work of several projects: what evictions cost by each of the rules, and who waits.

    WORKLOAD is random, day, sweep, trace (with --nodes and --pods), or a YAML file. No cluster is
    asked.
    """
    with one_line():
        finite(load=load, hours=hours, checkpoint_seconds=checkpoint_seconds)
        if workload != "random" and checkpoint_seconds is not None:
            raise ValueError("--checkpoint-seconds: is for the workload random")
        for name, value in (("nodes", nodes), ("pods", pods)):
            if workload != "trace" and value is not None:
                raise ValueError(f"--{name}: is for the workload trace")
        policies = rules.policies()
        request = ComparisonRequest(
            workload, seed, load, hours, checkpoint_seconds, nodes, pods, plot
        )
        found = compare(request, policies, sys.stderr)
        say(as_json(found) if output == "json" else as_table(found))


if __name__ == "__main__":
    command()
