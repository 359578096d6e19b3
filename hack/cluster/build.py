"""Builds the programs of the local cluster, each once per key, into the cache folder.

A program appears under its final name only when it is whole (built beside it, then
renamed), and one build runs at a time on a machine (a file lock), so the second of
two runs that start together finds the work done. Progress is shown while Go compiles.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from cluster.cache import programs_folder
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.programs import GROUPS, PROGRAMS, TOOLS_FOLDER, Program, in_groups, key
from cluster.progress import say
from cluster.toolchain import environment, find_go

_REPORT_EVERY_SECONDS = 10.0
_OFFLINE = ("dial tcp", "no such host", "connection refused", "i/o timeout", "proxyconnect")


def path_of(program: Program) -> Path:
    """Where `program` is, or will be once built."""
    return programs_folder() / f"{program.module}-{key(program)}" / program.name


def binary(name: str) -> Path:
    """The built program called `name`.

    Raises:
        ClusterError: there is no such program, or it has not been built.
    """
    for program in PROGRAMS:
        if program.name == name:
            path = path_of(program)
            if not path.exists():
                raise ClusterError(
                    f"{name} is not built: run `python -m cluster build {program.group}`"
                )
            return path
    names = ", ".join(program.name for program in PROGRAMS)
    raise ClusterError(f"no program is called {name!r}; there are: {names}")


def ensure(groups: Iterable[str] = ("core",)) -> None:
    """Builds what is missing of `groups`.

    Raises:
        ClusterError: a group does not exist, or a program could not be built.
    """
    groups = tuple(groups)
    for group in groups:
        if group not in GROUPS:
            raise ClusterError(f"no group is called {group!r}; there are: {', '.join(GROUPS)}")
    if not _missing(groups):
        return
    with exclusive(
        programs_folder() / ".lock", on_wait=lambda: say("waiting for another build to finish")
    ):
        missing = _missing(groups)
        if not missing:
            return
        go = find_go()
        say(f"building {len(missing)} programs, this happens once: {programs_folder()}")
        for number, program in enumerate(missing, 1):
            _build(go, program, f"[{number}/{len(missing)}] {program.name}")


def _missing(groups: Iterable[str]) -> tuple[Program, ...]:
    return tuple(program for program in in_groups(groups) if not path_of(program).exists())


def _build(go: Path, program: Program, title: str) -> None:
    if program.cgo and not shutil.which(os.environ.get("CC", "gcc")):
        raise ClusterError(
            f"{program.name} needs a C compiler: apt-get install gcc libc6-dev, or set CC"
        )
    target = path_of(program)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    log = target.with_name(f".{target.name}.log")
    say(title)
    started = reported = time.monotonic()
    with log.open("wb") as output:
        compiler = subprocess.Popen(
            [go, "build", "-v", *program.flags, "-o", partial, program.package],
            cwd=TOOLS_FOLDER / program.module,
            env={**environment(os.environ), "CGO_ENABLED": "1" if program.cgo else "0"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while compiler.poll() is None:
                time.sleep(0.1)
                if time.monotonic() - reported >= _REPORT_EVERY_SECONDS:
                    reported = time.monotonic()
                    say(
                        f"{title}: {_state(log.read_text(errors='replace'))}, "
                        f"{reported - started:.0f} s"
                    )
        except BaseException:
            compiler.kill()
            compiler.wait()
            raise
    if compiler.returncode != 0:
        raise ClusterError(_explain(program, log.read_text(errors="replace")))
    partial.rename(target)
    log.unlink()
    say(f"{title}: done in {time.monotonic() - started:.0f} s")


def _state(log: str) -> str:
    """What `go build -v` has done so far, from the lines that it wrote."""
    lines = [line for line in log.splitlines() if line]
    downloads = sum(line.startswith("go: downloading") for line in lines)
    packages = sum("/" in line and " " not in line for line in lines)
    if not packages:
        return f"{downloads} modules downloaded" if downloads else "looking up what is compiled"
    return f"{packages} packages compiled"


def _explain(program: Program, log: str) -> str:
    tail = "\n".join([line for line in log.splitlines() if "warning" not in line][-12:])
    if any(sign in log for sign in _OFFLINE):
        return (
            f"{program.name}: its Go modules could not be downloaded; the first build needs a "
            f"network that reaches the Go module proxy (GOPROXY):\n{tail}"
        )
    return f"{program.name} could not be built in {TOOLS_FOLDER / program.module}:\n{tail}"
