"""What is mounted below a folder, read from the kernel."""

from __future__ import annotations

import re
from pathlib import Path

_TABLE = Path("/proc/self/mountinfo")


def mounts_below(folder: Path, table: Path = _TABLE) -> list[Path]:
    """Mount points at or below `folder`; none where the kernel tells nothing of mounts."""
    if not table.exists():
        return []
    resolved = folder.resolve()
    points = (Path(_unescape(line.split()[4])) for line in table.read_text().splitlines())
    return [point for point in points if point.is_relative_to(resolved)]


def _unescape(field: str) -> str:
    """Undoes the octal escapes of blanks in /proc/self/mountinfo (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
