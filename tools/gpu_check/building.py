"""Builds what the check needs: libgpucap and the probe; the pretended driver for ``--fake``.

libgpucap comes from its own Makefile and is kept in native/build, which others share: a lock makes
everybody wait for their turn. The probe takes a second, so it is built anew for every run.
"""

import fcntl
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_check.findings import CannotRunError

ROOT = Path(__file__).parents[2]
NATIVE = ROOT / "native"
BUILD = NATIVE / "build"
ROWS = ROOT / "tests" / "native" / "programs"
SOURCES = Path(__file__).parent / "probe"
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror"]


@dataclass(frozen=True, slots=True)
class Programs:
    """What was built.

    Attributes:
        library: libgpucap.so.
        probe: the program.
        probe_library: the same as a library, for ctypes.
        finds: a library that finds the driver by itself.
        idle: a library that does nothing.
    """

    library: Path
    probe: Path
    probe_library: Path
    finds: Path = Path()
    idle: Path = Path()


def require_compiler(root: Path = ROOT) -> None:
    """Make sure that gcc and make are there, and the sources where both can work.

    Raises:
        CannotRunError: they are not, or make and LD_PRELOAD would take the path for several.
    """
    if re.search(r"[\s:]", str(root)):
        raise CannotRunError(
            f"the path {str(root)!r} has a blank or a colon in it, with which make and LD_PRELOAD "
            "cannot work: move the checkout."
        )
    missing = [name for name in ("gcc", "make") if not shutil.which(name)]
    if missing:
        raise CannotRunError(
            f"no {' and no '.join(missing)} in PATH: libgpucap is built from its sources. "
            "On Debian and Ubuntu: apt-get install gcc make libc6-dev."
        )


def build(folder: Path, driver: Path) -> Programs:
    """Build libgpucap, and the probe, linked with this driver, into the folder.

    Raises:
        CannotRunError: the compiler's words.
    """
    library = BUILD / "libgpucap.so"
    make("libgpucap", str(library))
    common = [*FLAGS, f"-I{NATIVE / 'include'}", f"-I{ROWS}", f"-I{SOURCES}"]
    shared = [str(SOURCES / "commands.c"), str(SOURCES / "measure.c"), str(ROWS / "rows.c")]
    probe, probe_library = folder / "probe", folder / "libprobe.so"
    linked = ["-Wl,--no-as-needed,--allow-shlib-undefined", str(driver), "-ldl"]
    run(["gcc", *common, "-o", str(probe), str(SOURCES / "main.c"), *shared, *linked])
    run(["gcc", *common, "-fPIC", "-shared", "-o", str(probe_library), *shared, "-ldl"])
    finds = folder / "libfinds.so"
    run(["gcc", *FLAGS, "-fPIC", "-shared", "-o", str(finds), str(ROWS / "finds.c"), "-ldl"])
    idle, empty = folder / "libidle.so", folder / "idle.c"
    empty.write_text("int idle;\n")
    run(["gcc", *FLAGS, "-fPIC", "-shared", "-o", str(idle), str(empty)])
    return Programs(library, probe, probe_library, finds, idle)


def make(part: str, *targets: str) -> None:
    """Build one of the native parts, what is out of date of it.

    Raises:
        CannotRunError: the compiler's words.
    """
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run(["make", "-C", str(NATIVE / part), f"BUILD={BUILD}", *targets])


def run(command: Sequence[str]) -> None:
    """Run a compiler.

    Raises:
        CannotRunError: its words.
    """
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CannotRunError(f"{command[0]} failed:\n{done.stdout}{done.stderr}".rstrip())
