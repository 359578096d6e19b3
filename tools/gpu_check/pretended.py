"""``--fake``: one pretended A100 with 40 GB, so that the check itself can be tested anywhere."""

from pathlib import Path

from gpu_check.building import BUILD, make
from gpu_check.libraries import CUDA, NVML, DriverLibraries

CONFIGURATION = """\
driver 570.86.15
cuda 12080
context_mib 300
device 0 GPU-00000000-0000-4000-8000-000000000000 NVIDIA_A100-PCIE-40GB 40960 512 8.0
"""


def pretend_driver(folder: Path) -> DriverLibraries:
    """Build the pretended driver and give it a device of its own in this folder.

    Raises:
        CannotRunError: it cannot be built.
    """
    make("fakegpu")
    folder.mkdir()
    (folder / "config").write_text(CONFIGURATION)
    libraries = BUILD / "fakegpu"
    return DriverLibraries(
        libraries / CUDA,
        libraries / NVML,
        {
            "LD_LIBRARY_PATH": str(libraries),
            "FAKEGPU_DIR": str(folder),
            "FAKEGPU_DEV": str(folder / "all"),  # not there: every device
        },
    )
