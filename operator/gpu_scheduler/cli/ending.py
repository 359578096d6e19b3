"""How a command ends that cannot do what it was told: one line, and 2."""

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def one_line() -> Iterator[None]:
    """Say an error that a user can mend in one line, and end with 2."""
    try:
        yield
    except ValueError as error:
        click.echo(f"gpu-scheduler: {error}", err=True)
        raise click.exceptions.Exit(2) from None
