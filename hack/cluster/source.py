"""Compiles programs of the local cluster from their Go modules.

The last of the ways in which `build.py` gets a program, one module at a time, since a compiler
takes all cores. Progress is shown while Go compiles.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import ClusterError
from cluster.programs import TOOLS_FOLDER, Program
from cluster.progress import say
from cluster.toolchain import environment, find_go

_REPORT_EVERY_SECONDS = 10.0
_OFFLINE = ("dial tcp", "no such host", "connection refused", "i/o timeout", "proxyconnect")


@dataclass(frozen=True, slots=True)
class Batch:
    """Programs that one run of the compiler makes, and the files that they become."""

    programs: tuple[Program, ...]
    targets: tuple[Path, ...]

    @property
    def names(self) -> str:
        """Theirs, for a line of progress."""
        return ", ".join(program.name for program in self.programs)


def batches(programs: Iterable[Program], path_of: Callable[[Program], Path]) -> list[Batch]:
    """Those of one module, built in the same way, together: what they share is looked at once."""
    alike: dict[tuple[object, ...], list[Program]] = {}
    for program in programs:
        alike.setdefault((program.module, program.cgo, program.flags), []).append(program)
    return [Batch(tuple(each), tuple(map(path_of, each))) for each in alike.values()]


def compile_batch(batch: Batch, title: str) -> None:
    """Builds programs beside their targets, then renames them; `title` begins lines of progress.

    Raises:
        ClusterError: there is no toolchain or C compiler, or a program does not compile.
    """
    first = batch.programs[0]
    if first.cgo and not shutil.which(os.environ.get("CC", "gcc")):
        raise ClusterError(
            f"{batch.names}: a C compiler is needed: apt-get install gcc libc6-dev, or set CC"
        )
    go = find_go()
    folder = batch.targets[0].parents[1] / f".{first.module}.partial"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log, started = folder / ".log", time.monotonic()
    packages = [program.package for program in batch.programs]
    # Into a folder each program goes under the name of its package.
    outputs = [folder / (Path(each).name or first.name) for each in packages]
    into = f"{folder}/" if len(packages) > 1 else outputs[0]
    environ = {**environment(os.environ), "CGO_ENABLED": "1" if first.cgo else "0"}
    command = [go, "build", "-v", *first.flags, "-o", into, *packages]
    if _run(command, TOOLS_FOLDER / first.module, environ, log=log, title=title) != 0:
        raise ClusterError(_explain(batch, log.read_text(errors="replace")))
    for output, target in zip(outputs, batch.targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        output.rename(target)
    shutil.rmtree(folder)
    say(f"{title}: done in {time.monotonic() - started:.0f} s")


def _run(
    command: Sequence[str | Path],
    folder: Path,
    environ: Mapping[str, str],
    *,
    log: Path,
    title: str,
) -> int:
    """The exit status of the compiler; meanwhile it is said how far it has come."""
    started = reported = time.monotonic()
    with log.open("wb") as output:
        compiler = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while compiler.poll() is None:
                time.sleep(0.1)
                if time.monotonic() - reported >= _REPORT_EVERY_SECONDS:
                    reported = time.monotonic()
                    state = _state(log.read_text(errors="replace"))
                    say(f"{title}: {state}, {reported - started:.0f} s")
        except BaseException:
            compiler.kill()
            compiler.wait()
            raise
    return compiler.returncode


def _state(log: str) -> str:
    """What `go build -v` has done so far, from the lines that it wrote."""
    lines = [line for line in log.splitlines() if line]
    downloads = sum(line.startswith("go: downloading") for line in lines)
    packages = sum("/" in line and " " not in line for line in lines)
    if not packages:
        return f"{downloads} modules downloaded" if downloads else "looking up what is compiled"
    return f"{packages} packages compiled"


def _explain(batch: Batch, log: str) -> str:
    tail = "\n".join([line for line in log.splitlines() if "warning" not in line][-12:])
    if any(sign in log for sign in _OFFLINE):
        return (
            f"{batch.names}: its Go modules could not be downloaded; the first build needs a "
            f"network that reaches the Go module proxy (GOPROXY), or a mirror with the programs "
            f"(GPU_SCHEDULER_MIRROR):\n{tail}"
        )
    return f"{batch.names} could not be built in {TOOLS_FOLDER / batch.programs[0].module}:\n{tail}"
