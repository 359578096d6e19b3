"""The C parts as `make -C native` built them: where they are, and what a process needs to use them.

NATIVE_BUILD names another build folder. With `native/build/sanitize` (from `make -C native
sanitize`) every test runs against the sanitizer build, whose runtime is preloaded into Python.
"""

import fcntl
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native"
SANITIZER_OPTIONS = {
    # Python itself leaks at exit; a driver keeps what its caller forgot.
    "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


@dataclass(frozen=True, slots=True)
class NativeBuild:
    """What was built."""

    folder: Path
    sanitized: bool = False

    @property
    def fakegpu(self) -> Path:
        """The folder of the pretended driver, for LD_LIBRARY_PATH."""
        return self.folder / "fakegpu"

    @property
    def libcuda(self) -> Path:
        """The pretended CUDA driver."""
        return self.fakegpu / "libcuda.so.1"

    @property
    def libnvidia_ml(self) -> Path:
        """The pretended NVML."""
        return self.fakegpu / "libnvidia-ml.so.1"

    @property
    def evader(self) -> Path:
        """A program that no preloaded library sees."""
        return self.fakegpu / "evader"

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which a program finds the pretended driver."""
        found = {"LD_LIBRARY_PATH": str(self.fakegpu)}
        if self.sanitized:
            runtime = subprocess.run(
                ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
            )
            found |= {**SANITIZER_OPTIONS, "LD_PRELOAD": runtime.stdout.strip()}
        return found


def build() -> NativeBuild:
    """Build what is out of date; several test workers take turns.

    Raises:
        RuntimeError: the compiler's words.
    """
    folder = Path(os.environ.get("NATIVE_BUILD") or NATIVE / "build").absolute()
    if "NATIVE_BUILD" in os.environ:
        return NativeBuild(folder, sanitized=folder.name == "sanitize")
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", str(NATIVE)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"make -C native failed:\n{done.stdout}{done.stderr}")
    return NativeBuild(folder)
