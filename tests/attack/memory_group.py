"""A bound on the memory of processes, as a kubelet makes one for a container: a cgroup, v1 or v2.

Who goes beyond it is killed by the kernel, as in a cluster. Needs root.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "gpu-scheduler-attack"
_REMOVE_SECONDS = 10.0


class MemoryGroup:
    """One cgroup with a limit, on this machine."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """``folder``: of the cgroup, which is made here."""
        self._folder = folder
        folder.mkdir()
        (folder / self._file("memory.limit_in_bytes", "memory.max")).write_text(str(limit_bytes))
        with suppress(OSError):  # nobody may swap what is beyond the limit, where there is swap
            (folder / self._file("memory.memsw.limit_in_bytes", "memory.swap.max")).write_text("0")

    def _file(self, v1: str, v2: str) -> str:
        return v1 if (self._folder / "memory.limit_in_bytes").exists() else v2

    def add(self, pid: int) -> None:
        """A process belongs to it from now on; what it holds already is not counted in v1."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def killed(self) -> int:
        """How many processes the kernel killed for the limit's sake."""
        text = (self._folder / self._file("memory.oom_control", "memory.events")).read_text()
        counts = dict(line.split() for line in text.splitlines())
        return int(counts.get("oom_kill", "0"))

    def remove(self) -> None:
        """Once its processes have ended."""
        deadline = time.monotonic() + _REMOVE_SECONDS
        while True:
            try:
                return self._folder.rmdir()
            except FileNotFoundError:
                return None
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


@contextmanager
def memory_group(name: str, limit_bytes: int) -> Iterator[MemoryGroup]:
    """A group that is gone afterwards.

    Raises:
        SystemExit: none can be made here.
    """
    root = _root()
    try:
        for old in root.glob(f"{PREFIX}-*"):
            pid = old.name.removeprefix(f"{PREFIX}-").partition("-")[0]
            if not Path(f"/proc/{pid}").exists():  # of a run that was killed
                with suppress(OSError):
                    old.rmdir()
        made = MemoryGroup(root / f"{PREFIX}-{os.getpid()}-{name}", limit_bytes)
    except OSError as error:
        raise SystemExit(
            f"no memory limit can be set in {root} ({error}): run it as root"
        ) from error
    try:
        yield made
    finally:
        made.remove()


def _root() -> Path:
    """Where the memory controller is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        mounted, (kind, _, options) = Path(left.split()[4]), right.split()[:3]
        if kind == "cgroup" and "memory" in options.split(","):
            return mounted
        if kind == "cgroup2" and "memory" in (mounted / "cgroup.controllers").read_text().split():
            with suppress(OSError):
                (mounted / "cgroup.subtree_control").write_text("+memory")
            return mounted
    raise SystemExit("this machine has no cgroup controller for memory")
