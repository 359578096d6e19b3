"""Where the driver's libraries are: libcuda.so.1 and libnvidia-ml.so.1.

First as any program would find them (LD_LIBRARY_PATH, ldconfig); then in folders that container
runtimes and distributions use without telling the loader. The folder found so goes into the
LD_LIBRARY_PATH of every process that is started.
"""

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_check.findings import CannotRunError

CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
FOLDERS = (
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/run/opengl-driver/lib",
    "/usr/local/cuda/compat",
)


@dataclass(frozen=True, slots=True)
class DriverLibraries:
    """What was found.

    Attributes:
        cuda: path of libcuda.so.1, to link with.
        nvml: path of libnvidia-ml.so.1; None: not there.
        environment: variables with which other processes find the same ones.
    """

    cuda: Path
    nvml: Path | None
    environment: Mapping[str, str]


def loaded_path(name: str) -> Path | None:
    """Load a library as a program would and say which file it is."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return None
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[5:]
            # The file behind a link has the driver's version in its name: libcuda.so.580.65.
            if path and Path(path[0]).name.startswith(name.removesuffix(".1")):
                return Path(path[0])
    return None


def find_driver(
    folders: Sequence[str] = FOLDERS, loader: Callable[[str], Path | None] = loaded_path
) -> DriverLibraries:
    """Find the driver.

    Raises:
        CannotRunError: there is none.
    """
    cuda = loader(CUDA)
    if cuda:
        return DriverLibraries(cuda, loader(NVML), {})
    for folder in map(Path, folders):
        if (folder / CUDA).exists():
            path = ":".join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH")]))
            nvml = folder / NVML
            return DriverLibraries(
                folder / CUDA, nvml if nvml.exists() else None, {"LD_LIBRARY_PATH": path}
            )
    raise CannotRunError(
        f"no NVIDIA driver: {CUDA} is neither known to the loader nor in {', '.join(folders)}. "
        "Install the driver, or put its folder into LD_LIBRARY_PATH; --fake needs none."
    )
