"""How much GPU stays unused when a trace is played: ``python -m tests.perf.replay --help``.

``trace`` reads the files, ``arrivals`` and ``lifetimes`` make a stream of pods from them, ``run``
plays it with the planner's own scores, ``result`` says what came out, ``plot`` draws it.
"""

import sys
from pathlib import Path

import click
from tests.perf.options import HELP, finite, plot_option, seed_option, trace_options
from tests.perf.replay.command import ReplayRequest, as_json, as_table, replay

from gpu_scheduler.cli.ending import one_line
from gpu_scheduler.cli.rules import packings, policy_option
from gpu_scheduler.cli.shown import output_option, say


@click.command("python -m tests.perf.replay", context_settings=HELP)
@trace_options("CSV file of {}, may be compressed with xz.", required=True)
@policy_option(several=True)
@seed_option
@click.option(
    "--arrive",
    type=click.FloatRange(0.01, 10),
    default=1.3,
    show_default=True,
    help="Demand that arrives, in clusters.",
)
@click.option(
    "--releasing",
    type=click.FloatRange(0.01, 10),
    help="Let pods come and go at this load, without end of demand.",
)
@plot_option("what stays unused, and what is lost and why")
@output_option("table", "json")
def command(
    nodes: Path,
    pods: Path,
    policy: tuple[str, ...],
    seed: int,
    arrive: float,
    releasing: float | None,
    plot: Path | None,
    output: str,
) -> None:
    """Play a trace of pods on a trace of nodes: how much GPU stays unused, and what is lost.

    No cluster is asked. Files are in the format of the openb trace, see docs/packing.md.
    """
    with one_line():
        chosen = packings(policy)
        finite(arrive=arrive, releasing=releasing)
        request = ReplayRequest(nodes, pods, chosen, seed, arrive, releasing, plot, causes=True)
        results = replay(request, sys.stderr)
        say(as_json(results) if output == "json" else as_table(results))


if __name__ == "__main__":
    command()
