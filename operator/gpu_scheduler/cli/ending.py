"""How a command ends that cannot do what it was told: one line and an exit code, no traceback.

2: the command line, a file or a what-if is wrong, and so it is before anything was asked. 1: the
cluster, or the way to it, says no, or what was asked for is not so. 0: done.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from gpu_scheduler.cli.shown import say


class Failed(Exception):  # noqa: N818 - an ending, as click's Exit
    """What was asked for could not be had: its message, and 1."""


@contextmanager
def one_line() -> Iterator[None]:
    """Say an error in one line, and end with its code."""
    from gpu_scheduler.kube.connection import ConfigError

    try:
        yield
    except ValueError as error:
        end(str(error), 2)
    except (Failed, ConfigError) as error:
        end(str(error), 1)
    except ModuleNotFoundError as error:
        if (error.name or __name__).startswith("gpu_scheduler"):
            raise
        end(missing(error), 1)


def missing(error: ModuleNotFoundError) -> str:
    """What is not installed, and what has it."""
    extra = {"numpy": "plan", "matplotlib": "plot"}.get(error.name or "", "cli")
    wanted = ",".join(dict.fromkeys(("cli", extra)))
    return f"{error.name} is missing: pipx install --force '.[{wanted}]' where the sources are"


def end(text: str, code: int) -> NoReturn:
    """Say it behind the program's name, and end with this code."""
    name = click.get_current_context().find_root().info_name or "kubectl gpu"
    say(f"{name}: {text.strip()}", err=True)
    raise click.exceptions.Exit(code) from None
