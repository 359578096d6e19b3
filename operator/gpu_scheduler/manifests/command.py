"""``kubectl gpu render``: the files it reads, what it prints and how it ends."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from gpu_scheduler.api.share_keys import Compat
from gpu_scheduler.jobs.share import Installation
from gpu_scheduler.manifests.rendering import RenderError, odd_keys, rendered


def run(filenames: Sequence[str], given: Installation, compat: Compat | None) -> int:
    """Print manifests and warnings; 1 and a line for each problem where some cannot be made."""
    found, wrong, odd = list[str](), list[str](), list[str]()
    for source, text in _read(filenames, wrong):
        try:
            found.append(rendered(text, given, source, compat))
            odd += odd_keys(text, source)
        except RenderError as error:
            wrong += error.problems
    if wrong:
        click.echo("\n".join(wrong), err=True)
        return 1
    for each in odd:
        click.echo(f"Warning: {each}", err=True)
    click.echo("---\n".join(found), nl=False)
    return 0


def _read(filenames: Sequence[str], wrong: list[str]) -> Iterator[tuple[str, str]]:
    for name in filenames:
        try:
            yield name, sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            wrong.append(f"{name}: {error}")
