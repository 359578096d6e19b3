"""What is mounted below a folder, and whether file systems can be stacked there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")


def mounts_below(folder: Path, table: Path = _TABLE) -> list[Path]:
    """Mount points at or below `folder`; none where the kernel tells nothing of mounts."""
    if not table.exists():
        return []
    resolved = folder.resolve()
    points = (Path(_unescape(line.split()[4])) for line in table.read_text().splitlines())
    return [point for point in points if point.is_relative_to(resolved)]


def can_stack(folder: Path) -> bool:
    """Whether an overlay may lie in ``folder``; not on another one, as inside a container."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    done = subprocess.run(
        ["findmnt", "--noheadings", "--output=FSTYPE", f"--target={existing}"],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() != "overlay"


def _unescape(field: str) -> str:
    """Undoes the octal escapes of blanks in /proc/self/mountinfo (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
