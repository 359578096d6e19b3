"""Beside other preloaded libraries, without a driver, and with calls that are wrong."""

import ctypes
import ctypes.util
import os
import subprocess
from collections.abc import Callable

import pytest
from tests.native.container import OUT_OF_MEMORY, Container


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


@pytest.mark.parametrize("first", ["gpucap", "interposer"])
@pytest.mark.parametrize("resolution", ["linked", "dlopen", "procaddress"])
def test_a_second_preloaded_library(box: Container, first: str, resolution: str) -> None:
    before = box.gpu.environment.get("LD_PRELOAD", "")
    libraries = [str(box.library), str(box.programs / "libinterposer.so")]
    if first == "interposer":
        libraries.reverse()
    preload = ":".join([before, *libraries] if before else libraries)
    found = box.probe(resolution, "alloc", 128, LD_PRELOAD=preload)
    assert (found.pieces, found.answer) == (8, OUT_OF_MEMORY)


def count_interposed(interposer: str) -> int:
    """Take a piece through the chain of libraries; how many the interposer saw."""
    driver = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    everywhere = ctypes.CDLL(None)  # what a linked program gets: the first in the chain
    assert everywhere.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
    return int(ctypes.CDLL(interposer).interposer_count())


@pytest.mark.parametrize("first", ["gpucap", "interposer"])
def test_the_second_library_sees_the_calls_too(box: Container, first: str) -> None:
    before = box.gpu.environment.get("LD_PRELOAD", "")
    interposer = str(box.programs / "libinterposer.so")
    libraries = [str(box.library), interposer]
    if first == "interposer":
        libraries.reverse()
    preload = ":".join([before, *libraries] if before else libraries)
    assert box.call(f"{__name__}:count_interposed", interposer, LD_PRELOAD=preload) == 1
    assert box.ledger().held_mib() == 2  # once: rounded up to the driver's page


@pytest.mark.library_first
def test_beside_a_sanitizer(box: Container) -> None:
    """Its runtime asks dlsym for everything, before any of libc's functions can be called."""
    runtime = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    found = box.probe(
        "dlopen",
        "alloc",
        128,
        LD_PRELOAD=f"{runtime}:{box.library}",
        ASAN_OPTIONS="detect_leaks=0",
    )
    assert (found.pieces, found.answer) == (8, OUT_OF_MEMORY)


def what_dlsym_says() -> list[bool]:
    """Are the driver's functions there, before the driver is loaded and after?"""
    everything = ctypes.CDLL(None)
    found = [hasattr(everything, name) for name in ("cuMemAlloc_v2", "nvmlDeviceGetMemoryInfo")]
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    found.append(hasattr(everything, "cuMemAlloc_v2"))
    found.append(hasattr(everything, "cuNoSuchFunction"))
    return found


def test_functions_exist_only_with_the_driver(box: Container) -> None:
    assert box.call(f"{__name__}:what_dlsym_says") == [False, False, True, False]


LM_ID_NEWLM = -1


def pieces_of(way: str, library: str) -> int:
    """Load a library that is linked with the driver in a way of its own; the pieces it takes."""
    if way.startswith("deepbind"):
        mode = os.RTLD_DEEPBIND | os.RTLD_NOW
        return int(ctypes.CDLL(library, mode=mode).take_pieces(ctypes.c_ulong(128)))
    libc = ctypes.CDLL(None)  # not libc's own: what any caller finds
    libc.dlmopen.restype = libc.dlsym.restype = ctypes.c_void_p
    mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if way == "both" else 0)
    handle = libc.dlmopen(ctypes.c_long(LM_ID_NEWLM), library.encode(), mode)
    assert handle, way
    found = libc.dlsym(ctypes.c_void_p(handle), b"take_pieces")
    take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ulong)(found)
    return int(take(128))


@pytest.mark.parametrize("way", ["deepbind", "deepbind by a link", "dlmopen", "both"])
def test_a_library_that_brings_the_driver_with_it_does_not_get_it_past_the_cap(
    box: Container, way: str
) -> None:
    library = box.programs / "libtakes.so"
    if way.endswith("link"):
        (box.folder / "plugin").symlink_to(library)
        library = box.folder / "plugin"
    assert box.call(f"{__name__}:pieces_of", way, str(library)) == 8
    assert box.gpu.peak_mib() <= 1024 + 300


def names_of(way: str) -> list[str]:
    """Load the driver by its own name: whose function is there?"""
    libc = ctypes.CDLL(None)
    libc.dlmopen.restype = libc.dlopen.restype = libc.dlsym.restype = ctypes.c_void_p
    mode = os.RTLD_NOW | os.RTLD_DEEPBIND
    handle = (
        libc.dlopen(b"libcuda.so.1", mode)
        if way == "dlopen"
        else libc.dlmopen(ctypes.c_long(LM_ID_NEWLM), b"libcuda.so.1", mode)
    )
    hook = ctypes.cast(libc.cuMemAlloc_v2, ctypes.c_void_p).value
    return ["ours" if libc.dlsym(ctypes.c_void_p(handle), b"cuMemAlloc_v2") == hook else "another"]


@pytest.mark.parametrize("way", ["dlopen", "dlmopen"])
def test_the_driver_by_its_name_is_hooked_however_it_is_loaded(box: Container, way: str) -> None:
    assert box.call(f"{__name__}:names_of", way) == ["ours"]


def where_others_go(library: str) -> list[bool]:
    """A library without the driver, in a list of its own: is it another one, and does it work?"""
    libc = ctypes.CDLL(None)
    libc.dlmopen.restype = libc.dlopen.restype = libc.dlsym.restype = ctypes.c_void_p
    here = libc.dlopen(library.encode(), os.RTLD_NOW | os.RTLD_DEEPBIND)
    there = libc.dlmopen(ctypes.c_long(LM_ID_NEWLM), library.encode(), os.RTLD_NOW)
    found = [libc.dlsym(ctypes.c_void_p(each), b"zlibVersion") for each in (here, there)]
    version = [ctypes.CFUNCTYPE(ctypes.c_char_p)(each)() for each in found]
    libc.dlerror.restype = ctypes.c_char_p
    missing = libc.dlopen(b"/nonexistent/x.so", os.RTLD_NOW | os.RTLD_DEEPBIND)
    return [found[0] != found[1], version[0] == version[1], not missing, bool(libc.dlerror())]


def test_all_other_libraries_are_loaded_as_was_asked_for(box: Container) -> None:
    found = ctypes.util.find_library("z")
    assert found
    assert box.call(f"{__name__}:where_others_go", found) == [True, True, True, True]


def test_wrong_calls_get_the_drivers_own_answers(box: Container) -> None:
    bare = box.gpu.run([box.programs / "answers"])
    ours = box.run([box.programs / "answers"])
    assert bare.returncode == ours.returncode == 0, bare.stderr + ours.stderr
    assert len(bare.stdout.splitlines()) > 150
    assert ours.stdout == bare.stdout


def test_programs_without_cuda_are_left_alone(box: Container) -> None:
    done = box.run(["sh", "-c", "ls / >/dev/null && echo fine"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
    assert list(box.state.iterdir()) == []
