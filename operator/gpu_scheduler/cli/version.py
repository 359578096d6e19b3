"""``gpu-scheduler version``."""

import click

from gpu_scheduler import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(__version__)
