"""Fails when modules grow: the median may be 150 lines, the largest 500.

Called by `make lint` with the folders of the product's Python sources. A module past the limit is
two modules; the message names it.
"""

import statistics
import sys
from pathlib import Path

MEDIAN_LINES = 150
LARGEST_LINES = 500


def line_counts(folders: list[str]) -> dict[Path, int]:
    """Lines per module below the folders, packages' ``__init__`` left out."""
    return {
        path: len(path.read_text(encoding="utf-8").splitlines())
        for folder in folders
        for path in sorted(Path(folder).rglob("*.py"))
        if path.name != "__init__.py"
    }


def complaints(lines: dict[Path, int]) -> list[str]:
    """What is too long, one sentence each."""
    median = statistics.median(lines.values())
    found = [
        f"{path}: {count} lines, at most {LARGEST_LINES}"
        for path, count in lines.items()
        if count > LARGEST_LINES
    ]
    if median > MEDIAN_LINES:
        found.append(f"median module: {median:g} lines, at most {MEDIAN_LINES}")
    return found


def main() -> int:
    """Print the complaints; 1 when there are any."""
    found = complaints(line_counts(sys.argv[1:]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
