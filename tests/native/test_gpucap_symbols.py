"""What the library exports and needs, and that no way to allocate was overlooked."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.native.build import NATIVE, NativeBuild

GPUCAP = NATIVE / "libgpucap"
OLDEST_GLIBC = (2, 17)  # CentOS 7; every image with CUDA has at least this


def lines(file: Path) -> list[str]:
    """Without comments."""
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def hooked() -> set[str]:
    """The hooks of the library's table."""
    return set(re.findall(r"^HOOK\((\w+)\)", (GPUCAP / "src/functions.def").read_text(), re.M))


def waivers() -> dict[str, str]:
    """Symbol and reason."""
    return dict(line.split("\t") for line in lines(GPUCAP / "symbols/waivers.txt"))


def dynamic_symbols(library: Path) -> list[list[str]]:
    """Of objdump -T: words of each line, the name last."""
    done = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines() if re.match(r"[0-9a-f]{8}", line)]


def test_every_way_to_allocate_is_hooked_or_waived() -> None:
    exports = set(lines(GPUCAP / "symbols/driver-exports.txt"))
    words = "Alloc|Create|Reserve|Limit|Map|Bind|Import|Export|Child|Pool|Restore"
    allocating = {name for name in exports if re.search(words, name)}
    assert len(allocating) > 100
    assert allocating - hooked() - waivers().keys() == set()


def test_no_stale_waiver() -> None:
    exports = set(lines(GPUCAP / "symbols/driver-exports.txt"))
    assert waivers().keys() <= exports
    assert waivers().keys() & hooked() == set()
    assert all(len(reason) > 4 for reason in waivers().values())


def test_hooks_are_functions_of_the_driver() -> None:
    exports = set(lines(GPUCAP / "symbols/driver-exports.txt"))
    assert {name for name in hooked() if name.startswith("cu")} <= exports


def test_exports_are_the_hooks_and_what_finds_them(native: NativeBuild) -> None:
    symbols = dynamic_symbols(native.folder / "libgpucap.so")
    exported = {words[-1] for words in symbols if "*UND*" not in words and "*ABS*" not in words}
    assert exported == hooked() | {"dlsym", "dlopen", "dlmopen"}


def test_loads_on_old_systems_and_needs_only_libc(native: NativeBuild) -> None:
    if native.sanitizer:
        pytest.skip("that build needs the sanitizer's runtime")
    library = native.folder / "libgpucap.so"
    needed = re.findall(
        r"GLIBC_([\d.]+)\) (\w+)",
        "\n".join(" ".join(words) for words in dynamic_symbols(library) if "*UND*" in words),
    )
    assert needed
    assert {
        name for version, name in needed if tuple(map(int, version.split("."))) > OLDEST_GLIBC
    } == set()
    dynamic = subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True
    ).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert not re.search(r"\((INIT|FINI|INIT_ARRAY|FINI_ARRAY)\)", dynamic)  # no constructors
