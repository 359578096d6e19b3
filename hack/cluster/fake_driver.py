"""The pretended NVIDIA driver of the real node: native/fakegpu, built once per source and machine.

Containers get its libraries by CDI, and one folder that they all share: what devices there are and
what is used of their memory. ``FakeDriver.control`` breaks devices and shows who holds what.
"""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cache_folder import cache_folder
from cluster.commands import run
from cluster.errors import ClusterError
from cluster.locks import exclusive
from cluster.progress import say

NATIVE = Path(__file__).parents[2] / "native"
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
PROGRAMS = ("evader", "evader-static")  # take memory behind a preloaded library's back
CONTEXT_MIB = 300  # what a CUDA context costs on an A100, about


@dataclass(frozen=True, slots=True)
class FakeDriver:
    """A driver with its devices.

    Attributes:
        binaries: the folder of its libraries and programs.
        folder: what its processes share; ``/var/lib/fakegpu`` in containers.
    """

    binaries: Path
    folder: Path

    @property
    def libraries(self) -> tuple[Path, ...]:
        """The CUDA driver and NVML."""
        return tuple(self.binaries / name for name in LIBRARIES)

    @property
    def programs(self) -> tuple[Path, ...]:
        """What tests run in containers."""
        return tuple(self.binaries / name for name in PROGRAMS)

    def configure(self, text: str) -> None:
        """Write the configuration; everybody may write to the folder, whatever user they are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o777)
        (self.folder / "config").write_text(text)

    def control(self, *words: object) -> str:
        """Run fakegpuctl: ``xid UUID CODE``, ``set UUID lost 1``, ``busy PID PERCENT``, ``show``.

        Raises:
            ClusterError: it failed.
        """
        said, environment = list(map(str, words)), {**os.environ, "FAKEGPU_DIR": str(self.folder)}
        what = f"fakegpuctl {' '.join(said)}"
        return run([self.binaries / "fakegpuctl", *said], what, env=environment).stdout

    def state(self) -> dict[str, Any]:
        """Devices, processes with what they hold, and limits."""
        found: dict[str, Any] = json.loads(self.control("show"))
        return found


def binaries() -> Path:
    """The folder of the built driver, made first if it is not there.

    Raises:
        ClusterError: there is no compiler, or it failed.
    """
    folder = cache_folder() / "fakegpu" / _key(_sources())
    with exclusive(folder.with_name(f".{folder.name}.lock")):
        if not folder.exists():
            _build(folder)
    return folder


def _sources() -> list[Path]:
    found = [*(NATIVE / "fakegpu").iterdir(), *(NATIVE / "include").iterdir()]
    return sorted(path for path in found if path.is_file())


def _key(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256(platform.machine().encode())
    for source in sources:
        digest.update(f"{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def _build(folder: Path) -> None:
    if not shutil.which("make") or not shutil.which("gcc"):
        raise ClusterError("the pretended driver needs a C compiler: apt-get install gcc make")
    say("building the pretended NVIDIA driver")
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["make", "--directory", NATIVE / "fakegpu", f"BUILD={partial}", "CC=gcc"]
    run(command, "the pretended driver could not be built")
    (partial / "fakegpu").rename(folder)
    partial.rmdir()
