"""Compiles one program of the local cluster from its Go module.

The last of the ways in which `build.py` gets a program, one at a time, since a compiler
takes all cores. Progress is shown while Go compiles.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from cluster.errors import ClusterError
from cluster.programs import TOOLS_FOLDER, Program
from cluster.progress import say
from cluster.toolchain import environment, find_go

_REPORT_EVERY_SECONDS = 10.0
_OFFLINE = ("dial tcp", "no such host", "connection refused", "i/o timeout", "proxyconnect")


def compile_program(program: Program, target: Path, title: str) -> None:
    """Builds `program` beside `target`, then renames it; `title` begins each line of progress.

    Raises:
        ClusterError: there is no toolchain or C compiler, or the program does not compile.
    """
    if program.cgo and not shutil.which(os.environ.get("CC", "gcc")):
        raise ClusterError(
            f"{program.name} needs a C compiler: apt-get install gcc libc6-dev, or set CC"
        )
    go = find_go()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    log = target.with_name(f".{target.name}.log")
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
            f"network that reaches the Go module proxy (GOPROXY), or a mirror with the programs "
            f"(GPU_SCHEDULER_MIRROR):\n{tail}"
        )
    return f"{program.name} could not be built in {TOOLS_FOLDER / program.module}:\n{tail}"
