"""Does libgpucap know every function of the newest CUDA headers that may give memory?

Reads ``cuda.h`` of NVIDIA's packages for CUDA 12 and 13, which the developers' environment pins,
and says which functions with a word of allocating in their name are neither hooked nor waived, and
which are not in the list of the driver's exports at all. Exit status 1 if there are any. Called by
``make lint``; the native tests compare the list with the hooks.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

GPUCAP = Path(__file__).parents[1] / "native" / "libgpucap"
PACKAGES = ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")  # CUDA 12, and 13 and later
WORDS = re.compile("Alloc|Create|Reserve|Limit|Map|Bind|Import|Export|Child|Pool|Restore")
_LEAST = 400  # functions of any cuda.h since CUDA 12
_DECLARED = re.compile(r"CUDAAPI\s+(cu[A-Z]\w+)\s*\(")
_RENAMED = re.compile(r"#define\s+cu[A-Z]\w+\s+(cu[A-Z]\w+)\s*$", re.MULTILINE)
_INLINE = re.compile(r"static inline CUresult (?:CUDAAPI )?(cu[A-Z]\w+)\s*\(")
_BY_THREAD = re.compile(r"__CUDA_API_(PTSZ|PTDS)\((cu[A-Z]\w+)\)")


def functions(header: str) -> set[str]:
    """The functions that a ``cuda.h`` declares, under all names that the driver exports."""
    by_thread = {f"{name}_{suffix.lower()}" for suffix, name in _BY_THREAD.findall(header)}
    named = {*_DECLARED.findall(header), *_RENAMED.findall(header)} | by_thread
    return named - set(_INLINE.findall(header))


def lines(file: Path) -> list[str]:
    """Without comments."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def hooked() -> set[str]:
    """The hooks of the library's table."""
    return set(re.findall(r"^HOOK\((\w+)\)", (GPUCAP / "src/functions.def").read_text(), re.M))


def waivers() -> dict[str, str]:
    """Symbol and reason."""
    return dict(line.split("\t") for line in lines(GPUCAP / "symbols/waivers.txt"))


def exports() -> set[str]:
    """All that a driver exports, as far as it is known here."""
    return set(lines(GPUCAP / "symbols/driver-exports.txt"))


def complaints(name: str, declared: set[str]) -> Iterator[str]:
    """What is wrong with the lists, by a header with these functions."""
    if len(declared) < _LEAST:
        yield f"{name}: only {len(declared)} functions were found in cuda.h: is it another file?"
    known = hooked() | waivers().keys()
    for function in sorted(declared - exports()):
        yield f"{name}: {function} is not in symbols/driver-exports.txt"
    for function in sorted(declared - known):
        if WORDS.search(function):
            yield f"{name}: {function} is neither hooked nor in symbols/waivers.txt"


def header_of(package: str) -> str:
    """The text of a package's ``cuda.h``.

    Raises:
        PackageNotFoundError: it is not installed.
        FileNotFoundError: it has no such file.
    """
    for file in files(package) or ():
        if file.name == "cuda.h":
            return Path(str(file.locate())).read_text()
    raise FileNotFoundError(f"{package} has no cuda.h")


def main() -> int:
    """Check the installed packages; 1: something was found."""
    found: list[str] = []
    for package in PACKAGES:
        try:
            found += complaints(f"{package} {version(package)}", functions(header_of(package)))
        except (PackageNotFoundError, FileNotFoundError) as error:
            found.append(f"{error}: run make setup")
    sys.stdout.writelines(f"{each}\n" for each in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
