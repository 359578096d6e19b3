"""Whether this machine can stack file systems in a folder, for containers and image builds."""

import subprocess
from pathlib import Path


def possible_in(folder: Path) -> bool:
    """False on top of another overlay (inside a container), where the kernel refuses it."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    done = subprocess.run(
        ["findmnt", "--noheadings", "--output=FSTYPE", f"--target={existing}"],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() != "overlay"
