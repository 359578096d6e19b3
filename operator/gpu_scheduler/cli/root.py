"""The program and the table of its commands."""

import click

from gpu_scheduler.cli.lazy import LazyGroup, Place

_COMMANDS = {
    "render": Place(
        "gpu_scheduler.cli.render", "Make pods that ask for a share of a GPU ours; sends nothing."
    ),
    "simulate": Place("gpu_scheduler.cli.simulate", "Try what the planner would do."),
    "sweep": Place("gpu_scheduler.cli.sweep", "Look at hyperparameter searches."),
    "operator": Place("gpu_scheduler.cli.operator", "Run a replica of the operator."),
    "agent": Place("gpu_scheduler.cli.agent", "Run this node's agent."),
    "version": Place("gpu_scheduler.cli.version", "Print the version."),
}


@click.group(cls=LazyGroup, places=_COMMANDS)
def app() -> None:
    """A fractional GPU scheduler for Kubernetes."""
