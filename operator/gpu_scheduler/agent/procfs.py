"""What the agent reads under /proc about a process. Everything may be gone at any moment.

A pid is reused, a process is not: whoever remembers something of a process keys it by pid and start
time.
"""

from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LIBRARY = "libgpucap.so"


@dataclass(frozen=True, slots=True)
class Process:
    """A process of this node."""

    pid: int
    started: int  # clock ticks after boot: with the pid, the identity of a process
    command: str
    cgroup: str


class ProcFS:
    """A proc file system."""

    def __init__(self, root: Path = PROC) -> None:
        self.root = root

    def process(self, pid: int) -> Process | None:
        """A process, None when it is gone."""
        folder = self.root / str(pid)
        try:
            started, command = _stat((folder / "stat").read_bytes())
            cgroup = (folder / "cgroup").read_text(errors="replace")
        except (OSError, ValueError, IndexError):
            return None
        return Process(pid, started, command, cgroup)

    def started(self, pid: int) -> int | None:
        """Its start time, None when it is gone."""
        try:
            return _stat((self.root / str(pid) / "stat").read_bytes())[0]
        except (OSError, ValueError, IndexError):
            return None

    def has_library(self, pid: int, library: str = LIBRARY) -> bool | None:
        """Whether the library is mapped into it; None when that cannot be read."""
        ending = f"/{library}".encode()
        try:
            with (self.root / str(pid) / "maps").open("rb") as maps:
                # A library that was deleted or replaced since is mapped all the same.
                return any(
                    line.rstrip().removesuffix(b" (deleted)").endswith(ending) for line in maps
                )
        except OSError:
            return None

    def inner_pid(self, pid: int) -> int | None:
        """Its pid in its own (innermost) pid namespace."""
        try:
            status = (self.root / str(pid) / "status").read_text(errors="replace")
        except OSError:
            return None
        for line in status.splitlines():
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
        return pid

    def inside(self, pid: int, path: str) -> Path:
        """A path as the process itself sees it."""
        return self.root / str(pid) / "root" / path.lstrip("/")


def _stat(text: bytes) -> tuple[int, str]:
    # The command is in parentheses and may hold anything, parentheses and blanks too.
    opening, closing = text.index(b"("), text.rindex(b")")
    command = text[opening + 1 : closing].decode(errors="replace")
    return int(text[closing + 2 :].split()[19]), command
