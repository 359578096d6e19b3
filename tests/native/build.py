"""The C parts as `make -C native` built them: where they are, and what a process needs to use them.

NATIVE_BUILD names another build folder. With `native/build/sanitize` or `native/build/tsan` (from
`make -C native sanitize tsan`) every test runs against that build, and the sanitizer's runtime is
preloaded into Python.
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
    # Programs fork while they have threads.
    "TSAN_OPTIONS": "die_after_fork=0:exitcode=66:halt_on_error=1:suppressions="
    f"{Path(__file__).parent / 'programs' / 'tsan.supp'}",
}


@dataclass(frozen=True, slots=True)
class Sanitizer:
    """How programs are built with it, and its runtime, which must come first."""

    flags: str
    runtime: str


SANITIZERS = {
    "sanitize": Sanitizer("-fsanitize=address,undefined -fno-omit-frame-pointer", "libasan.so"),
    "tsan": Sanitizer("-fsanitize=thread", "libtsan.so"),
}


@dataclass(frozen=True, slots=True)
class NativeBuild:
    """What was built."""

    folder: Path
    sanitizer: Sanitizer | None = None

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
        if self.sanitizer:
            runtime = subprocess.run(
                ["gcc", f"-print-file-name={self.sanitizer.runtime}"],
                check=True,
                capture_output=True,
                text=True,
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
        return NativeBuild(folder, SANITIZERS.get(folder.name))
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-C", str(NATIVE)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"make -C native failed:\n{done.stdout}{done.stderr}")
    return NativeBuild(folder)
