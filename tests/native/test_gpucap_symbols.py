"""What the library exports and needs, and that no way to allocate was overlooked."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.native.build import NativeBuild

from driver_headers import WORDS, complaints, exports, functions, hooked, waivers

OLDEST_GLIBC = (2, 17)  # CentOS 7; every image with CUDA has at least this


def dynamic_symbols(library: Path) -> list[list[str]]:
    """Of objdump -T: words of each line, the name last."""
    done = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines() if re.match(r"[0-9a-f]{8}", line)]


def test_every_way_to_allocate_is_hooked_or_waived() -> None:
    allocating = {name for name in exports() if WORDS.search(name)}
    assert len(allocating) > 100
    assert allocating - hooked() - waivers().keys() == set()


def test_no_stale_waiver() -> None:
    assert waivers().keys() <= exports()
    assert waivers().keys() & hooked() == set()
    assert all(len(reason) > 4 for reason in waivers().values())


def test_hooks_are_functions_of_the_driver() -> None:
    assert {name for name in hooked() if name.startswith("cu")} <= exports()


def test_a_function_that_a_new_header_brings_is_seen() -> None:
    """What `make lint` asks of the headers of CUDA 12 and 13."""
    header = """
        CUresult CUDAAPI cuMemAllocFancy(CUdeviceptr *pointer, size_t bytes);
        #define cuMemCopyFancy __CUDA_API_PTSZ(cuMemCopyFancy)
        #define cuMemPeekFancy cuMemPeekFancy_v2
        static inline CUresult cuMemAllocInline(int how) {
    """
    declared = functions(header)
    assert declared == {"cuMemAllocFancy", "cuMemCopyFancy_ptsz", "cuMemPeekFancy_v2"}
    said = list(complaints("cuda 99", declared | exports()))
    assert [line.split()[2] for line in said] == [*sorted(declared), "cuMemAllocFancy"]
    assert list(complaints("cuda 98", exports())) == []
    assert "is it another file" in next(complaints("cuda 97", {"cuInit"}))


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
