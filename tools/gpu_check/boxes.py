"""A box: what a GPU container is to libgpucap, without a container.

A box is a state folder, a file with the cap, and the variables that put a process into it. A box
without a cap has no library: its processes see the driver as it is. ``make_box`` is handed to every
check, so that each has its own ledger.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

OURS = ("LD_PRELOAD", "GPUCAP_STATE_DIR", "GPUCAP_LIMIT_FILE", "GPUCAP_CONTEXT_MIB")
CAPS = ("GPU_MEMORY_LIMIT_MIB", "CUPY_GPU_MEMORY_LIMIT", "XLA_PYTHON_CLIENT_MEM_FRACTION")


@dataclass(frozen=True, slots=True)
class Box:
    """Where processes run.

    Attributes:
        folder: its own.
        cap_mib: the cap; None: no library and no cap.
        environment: of its processes, complete.
        wrapper: a command that runs theirs, with mounts of its own; empty: none.
    """

    folder: Path
    cap_mib: int | None
    environment: Mapping[str, str]
    wrapper: tuple[str, ...] = ()

    @property
    def limit_file(self) -> Path:
        """What libgpucap reads the cap from, also later."""
        return self.folder / "memory-limit-mib"

    def log(self) -> str:
        """What libgpucap had to say, on one line; empty when nothing."""
        file = self.folder / "libgpucap.log"
        return " / ".join(file.read_text().splitlines()) if file.exists() else ""


class MakeBox(Protocol):
    """Makes a box; context_mib: what a context is charged, None: libgpucap's own figure."""

    def __call__(self, cap_mib: int | None, context_mib: int | None = 0) -> Box:
        """Make the next one."""


@dataclass(slots=True)
class BoxMaker:
    """Makes boxes below one folder.

    Attributes:
        folder: for all of them.
        library: libgpucap.so; None: it is left out on purpose, and the check must fail.
        variables: how processes find the driver and the device.
    """

    folder: Path
    library: Path | None
    variables: Mapping[str, str]
    made: int = 0

    def __call__(self, cap_mib: int | None, context_mib: int | None = 0) -> Box:
        """Make the next one."""
        self.made += 1
        folder = self.folder / f"box-{self.made}"
        folder.mkdir()
        environment = {
            name: value for name, value in os.environ.items() if name not in (*OURS, *CAPS)
        }
        environment |= self.variables
        box = Box(folder, cap_mib, environment)
        if cap_mib is not None and self.library:
            box.limit_file.write_text(f"{cap_mib}\n")
            environment["LD_PRELOAD"] = str(self.library)
            environment["GPUCAP_STATE_DIR"] = str(folder)
            environment["GPUCAP_LIMIT_FILE"] = str(box.limit_file)
            if context_mib is not None:
                environment["GPUCAP_CONTEXT_MIB"] = str(context_mib)
        return box
