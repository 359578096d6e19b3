"""Find the real node's processes again, without having to remember them.

They are recognised by their exact arguments, read from /proc (a configuration file or a socket
that is the node's alone), so nobody else's containerd or kubelet is ever touched.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from cluster import process
from cluster.process import Process


def with_arguments(*wanted: str) -> list[Process]:
    """Live processes that have all of ``wanted`` among their arguments."""
    return _find(lambda _, arguments: set(wanted) <= set(arguments))


def outside_containers(program: str) -> list[Process]:
    """Live processes of ``program`` in this mount namespace, by whomever they were started."""
    own = os.readlink("/proc/self/ns/mnt")

    def matches(entry: Path, arguments: list[str]) -> bool:
        return Path(arguments[0]).name == program and os.readlink(entry / "ns/mnt") == own

    return _find(matches)


def by_pid(pids: Iterable[int]) -> list[Process]:
    """Those of ``pids`` that live."""
    found = []
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            continue
        # Field 22 of the line is the start time; the second may hold spaces and parentheses.
        found.append(Process(pid, int(stat.rpartition(")")[2].split()[19])))
    return [each for each in found if process.is_alive(each)]


def end(processes: Iterable[Process], *, grace_seconds: float = 0.0) -> list[Process]:
    """End the processes; returns those that would not go."""
    listed = list(processes)
    process.stop(listed, grace_seconds=grace_seconds)
    return [each for each in listed if process.is_alive(each)]


def _find(matches: Callable[[Path, list[str]], bool]) -> list[Process]:
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if matches(entry, arguments):
                pids.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile
    return by_pid(pids)
