"""What is mounted below a folder, and whether file systems can be stacked there."""

import re
from pathlib import Path

from cluster.commands import run

_TABLE = Path("/proc/self/mountinfo")


def mounts_below(folder: Path, table: Path = _TABLE) -> list[Path]:
    """Mount points at or below `folder`; none where the kernel tells nothing of mounts."""
    resolved = folder.resolve()
    return [point for point, _ in mounted(table) if point.is_relative_to(resolved)]


def mounted(table: Path = _TABLE) -> list[tuple[Path, str]]:
    """Every mount point, and the type of its file system."""
    if not table.exists():
        return []
    lines = [line.partition(" - ") for line in table.read_text().splitlines()]
    return [(Path(_unescape(left.split()[4])), right.split()[0]) for left, _, right in lines]


def can_stack(folder: Path) -> bool:
    """Whether an overlay may lie in ``folder``; not on another one, as inside a container."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    command = ["findmnt", "--noheadings", "--output=FSTYPE", f"--target={existing}"]
    return run(command, check=False).stdout.strip() != "overlay"


def _unescape(field: str) -> str:
    """Undoes the octal escapes of blanks in /proc/self/mountinfo (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
