"""Gets the programs of the local cluster, each once per key, into the cache folder.

From a mirror, from where it is published, or else from source: the file is the same
version either way, and lies at the same path. A program appears under its final name only
when it is whole (written beside it, then renamed), and one run at a time on a machine does
this (a file lock), so the second of two that start together finds the work done.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from cluster import fetch_pins
from cluster.cache import programs_folder
from cluster.errors import ClusterError
from cluster.fetch import Outcome, Wanted, fetch
from cluster.fetch_listed import ListedDigests
from cluster.fetch_offers import VARIABLE, Here, mirror_from, origins_allowed, ways_to
from cluster.fetch_url import LIMITS, Limits
from cluster.locks import exclusive
from cluster.programs import GROUPS, PROGRAMS, Program, in_groups, key, version
from cluster.progress import say
from cluster.source import Batch, batches, compile_batch

# Places that this process does not ask again, and why.
_AWAY: dict[str, str] = {}

Compile = Callable[[Batch, str], None]


def path_of(program: Program) -> Path:
    """Where `program` is, or will be."""
    return programs_folder() / f"{program.module}-{key(program)}" / program.name


def binary(name: str) -> Path:
    """The program called `name`.

    Raises:
        ClusterError: there is no such program, or it is not in the cache.
    """
    for program in PROGRAMS:
        if program.name == name:
            path = path_of(program)
            if not path.exists():
                raise ClusterError(
                    f"{name} is not in the cache: run `python -m cluster build {program.group}`"
                )
            return path
    names = ", ".join(program.name for program in PROGRAMS)
    raise ClusterError(f"no program is called {name!r}; there are: {names}")


def ensure(groups: Iterable[str] = ("core",)) -> None:
    """Fetches or builds what is missing of `groups`.

    Raises:
        ClusterError: a group does not exist, or a program could not be had in any way.
    """
    groups = tuple(groups)
    for group in groups:
        if group not in GROUPS:
            raise ClusterError(f"no group is called {group!r}; there are: {', '.join(GROUPS)}")
    if not missing(groups):
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(
                exclusive(
                    programs_folder() / ".lock",
                    on_wait=lambda: say("waiting for another build to finish"),
                )
            )
        except OSError as error:
            raise ClusterError(
                f"{programs_folder()} cannot be written ({error.strerror}); "
                "GPU_SCHEDULER_CACHE moves it"
            ) from None
        wanted = missing(groups)
        if wanted:
            obtain(wanted, fetch_pins.read(), _AWAY)


def missing(groups: Iterable[str]) -> tuple[Program, ...]:
    """The programs of `groups` that are not in the cache."""
    return tuple(program for program in in_groups(groups) if not path_of(program).exists())


def obtain(
    programs: Sequence[Program],
    pins: fetch_pins.Pins,
    away: dict[str, str],
    *,
    limits: Limits = LIMITS,
    compile_some: Compile = compile_batch,
) -> None:
    """Gets `programs` by the first way that gives the right file, source being the last."""
    began = time.monotonic()
    value = os.environ.get(VARIABLE)
    mirror = mirror_from(value)
    memory = ListedDigests()
    here = Here(
        pins,
        mirror,
        origins_allowed(value),
        fetch_pins.this_platform(),
        fetch_pins.this_libc(),
        memory.known,
    )
    say(f"{len(programs)} programs are missing, this happens once: {programs_folder()}")
    if mirror is not None:
        say(f"the mirror is {mirror.shown}")
        if isinstance(mirror.place, Path) and not mirror.place.is_dir():
            away.setdefault("the mirror", "is not there")
    wanted = {
        program.name: Wanted(
            program.name,
            path_of(program),
            ways_to(program.name, program.module, key(program), version(program), here),
        )
        for program in programs
    }
    outcomes = {
        each.wanted.name: each for each in fetch(list(wanted.values()), away, limits, memory)
    }
    rest = [program for program in programs if not outcomes[program.name].way]
    for program in rest:
        why = " and ".join(outcomes[program.name].reasons)
        say(f"{program.name}: from source, since {why}")
    parts = batches(rest, path_of)
    for number, batch in enumerate(parts, 1):
        compile_some(batch, f"[{number}/{len(parts)}] {batch.names}")
    say(_summary(list(outcomes.values()), time.monotonic() - began))


def _summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """How many programs came which way."""
    sizes: dict[str, list[int]] = {}
    for outcome in outcomes:
        sizes.setdefault(outcome.way, []).append(outcome.size)
    built = len(sizes.pop("", []))
    parts = [
        f"{len(each)} from {way} ({sum(each) / 1_000_000:.0f} MB)" for way, each in sizes.items()
    ]
    if built:
        parts.append(f"{built} from source")
    return f"{len(outcomes)} programs in {seconds:.0f} s: {', '.join(parts)}"
