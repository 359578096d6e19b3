"""Starts and stops the cluster's programs, each in a session of its own.

A process is known by its id and its start time, so an id that the kernel has given to
somebody else is never signalled. Every program also carries the run folder in its
environment: what a run that was killed had started but not yet written down is found
by that mark. Linux only, for it reads /proc.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "GPU_SCHEDULER_CLUSTER_FOLDER"


# Go's collector takes a tenth of an API server's time by default, and a third of that so; the
# server has 0.3 GiB more. Processors are what a machine that runs tests lacks.
_GOGC = "300"


@dataclass(frozen=True, slots=True)
class Process:
    """One started program: `start` is its start time in clock ticks since boot."""

    pid: int
    start: int


def spawn(argv: Sequence[str], *, log: Path, mark: Path) -> Process:
    """Starts `argv`, detached from this process, with its output appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # HOME is the run folder: programs must not read or write a user's own settings.
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(mark),
        MARK: str(mark),
        "GOGC": _GOGC,
    }
    # posix_spawn and not subprocess: nobody here waits for these processes to end.
    pid = os.posix_spawn(
        argv[0],
        list(argv),
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), write, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGPIPE],
    )
    _wait_for_mark(pid)
    return Process(pid, _stat(pid)[1])


def _wait_for_mark(pid: int) -> None:
    """Waits until a program that was just started can be found by its environment.

    The kernel lets who started it go on before it has put that environment there.
    """
    with suppress(OSError):
        while _stat(pid)[0] not in "ZX" and not Path(f"/proc/{pid}/environ").read_bytes():
            time.sleep(0.001)


def running(pid: int) -> Process | None:
    """The process that has the id `pid` now."""
    state, start = _stat(pid)
    return None if state == "X" else Process(pid, start)


def program_name(process: Process) -> str:
    """File name of the program that `process` runs; empty when it has ended."""
    try:
        return Path(f"/proc/{process.pid}/exe").readlink().name
    except OSError:
        return ""


def is_alive(process: Process) -> bool:
    """Whether `process` still runs; one that has ended and waits to be reaped does not.

    A process reads as a zombie as soon as its first thread has ended, for example after SIGKILL:
    until the others have, too, it keeps its ports.
    """
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    state, start = _stat(process.pid)
    if start != process.start or state == "X":
        return False
    return state != "Z" or _threads(process.pid) > 1


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def send(process: Process, number: signal.Signals) -> None:
    """Signals `process` if it still runs."""
    if is_alive(process):
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def stop(processes: Iterable[Process], *, grace_seconds: float) -> list[Process]:
    """Ends `processes` together: asks them, waits, then kills; returns those that would not go."""
    left = [process for process in processes if is_alive(process)]
    for process in left:
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)
    left = _wait(left, grace_seconds)
    for process in left:
        send(process, signal.SIGKILL)
    return _wait(left, 10.0)


def marked_with(folder: Path) -> list[Process]:
    """Every running program that was started for the run folder `folder`."""
    mark = f"{MARK}={folder}".encode()
    return _find(lambda entry: mark in (entry / "environ").read_bytes().split(b"\0"))


def with_arguments(*wanted: str) -> list[Process]:
    """Every running program that has all of `wanted` among its arguments.

    A configuration file or a socket that is one program's alone, so nobody else's is found.
    """
    return _find(lambda entry: set(wanted) <= set(_arguments(entry)))


def outside_containers(program: str) -> list[Process]:
    """Live processes of `program` in this mount namespace, by whomever they were started."""
    own = os.readlink("/proc/self/ns/mnt")
    return _find(
        lambda entry: (
            Path(_arguments(entry)[0]).name == program and os.readlink(entry / "ns/mnt") == own
        )
    )


def by_pid(pids: Iterable[int]) -> list[Process]:
    """Those of `pids` that live."""
    found = (running(pid) for pid in pids)
    return [process for process in found if process is not None and is_alive(process)]


def _find(matches: Callable[[Path], bool]) -> list[Process]:
    """Live processes whose folder in /proc `matches`; those that end meanwhile do not."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if matches(entry):
                    pids.append(int(entry.name))
    return by_pid(pids)


def _arguments(entry: Path) -> list[str]:
    return (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")


def _wait(processes: list[Process], seconds: float) -> list[Process]:
    deadline = time.monotonic() + seconds
    while processes and time.monotonic() < deadline:
        time.sleep(0.02)
        processes = [process for process in processes if is_alive(process)]
    return processes


def _stat(pid: int) -> tuple[str, int]:
    """State letter and start time of `pid`; ("X", -1) when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ("X", -1)
    # The second field is the program's name in parentheses and may hold spaces.
    fields = text[text.rindex(")") + 2 :].split()
    return (fields[0], int(fields[19]))
