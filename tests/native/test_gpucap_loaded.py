"""The driver is recognised by what it is, and so is what brings it in, however that is loaded."""

import ctypes
import ctypes.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.container import Container
from tests.native.cuda import OUT_OF_MEMORY, SUCCESS

LM_ID_NEWLM = -1


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def opened(way: str, file: str) -> int:
    """A handle of a library; ``way``: plain, deepbind, dlmopen, both."""
    libc = ctypes.CDLL(None)  # not libc's own: what any caller finds
    libc.dlopen.restype = libc.dlmopen.restype = ctypes.c_void_p
    mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if way in ("deepbind", "both") else 0)
    if way in ("dlmopen", "both"):
        handle = libc.dlmopen(ctypes.c_long(LM_ID_NEWLM), file.encode(), mode)
    else:
        handle = libc.dlopen(file.encode(), mode)
    libc.dlerror.restype = ctypes.c_char_p
    assert handle, libc.dlerror()
    return int(handle)


def symbol(handle: int, name: str) -> int:
    libc = ctypes.CDLL(None)
    libc.dlsym.restype = ctypes.c_void_p
    found = libc.dlsym(ctypes.c_void_p(handle), name.encode())
    assert found, name
    return int(found)


def pieces_of(way: str, library: str) -> int:
    """What a library gets that finds the driver by itself."""
    take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_ulong)(
        symbol(opened(way, library), "take_pieces")
    )
    return int(take(128))


def pieces_from(way: str, driver: str) -> list[int]:
    """What a program gets of a driver that it opened itself, and the answer that ended it."""
    if driver == "/proc/self/fd":
        driver = f"{driver}/{os.open(ctypes_driver(), os.O_RDONLY)}"
    elif driver == "memfd":
        file = os.memfd_create("x")
        os.write(file, Path(ctypes_driver()).read_bytes())
        driver = f"/proc/self/fd/{file}"
    handle = opened(way, driver)

    def call(name: str, *arguments: object) -> int:
        function = ctypes.CFUNCTYPE(ctypes.c_int)(symbol(handle, name))
        return int(function(*arguments))

    context, pointer, count = ctypes.c_void_p(), ctypes.c_uint64(), 0
    assert call("cuInit", 0) == SUCCESS
    assert call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0) == SUCCESS
    assert call("cuCtxSetCurrent", context) == SUCCESS
    answer = 0
    while count < 64 and answer == SUCCESS:
        answer = call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(128 << 20))
        count += answer == SUCCESS
    return [count, answer]


def ctypes_driver() -> str:
    """The pretended driver's file."""
    return str(Path(os.environ["LD_LIBRARY_PATH"].split(":")[0]) / "libcuda.so.1")


@pytest.mark.parametrize("library", ["libfinds.so", "libneeds.so"])
@pytest.mark.parametrize("way", ["plain", "deepbind", "dlmopen", "both"])
def test_a_library_that_finds_the_driver_by_itself_does_not_get_it_past_the_cap(
    box: Container, way: str, library: str
) -> None:
    assert box.call(f"{__name__}:pieces_of", way, str(box.programs / library)) == 8
    assert box.gpu.peak_mib() <= 1024 + 300


@pytest.mark.parametrize("way", ["deepbind", "dlmopen"])
def test_it_is_looked_for_as_the_loader_does(box: Container, way: str) -> None:
    path = f"{box.gpu.environment['LD_LIBRARY_PATH']}:{box.programs}"
    found = box.call(f"{__name__}:pieces_of", way, "libneeds.so", LD_LIBRARY_PATH=path)
    assert found == 8


@pytest.fixture
def drivers(box: Container) -> dict[str, str]:
    """The driver under names that are not its own."""
    real = box.gpu.build.libcuda
    (box.folder / "link").symlink_to(real)
    shutil.copy(real, box.folder / "copy.so")
    nameless = real.read_bytes().replace(b"\0libcuda.so.1\0", b"\0nothing.so.1\0")
    assert nameless != real.read_bytes()
    (box.folder / "nameless.so").write_bytes(nameless)
    return {
        "link": str(box.folder / "link"),
        "copy": str(box.folder / "copy.so"),
        "nameless": str(box.folder / "nameless.so"),
        "/proc/self/fd": "/proc/self/fd",
        "memfd": "memfd",
    }


@pytest.mark.parametrize("name", ["link", "copy", "nameless", "/proc/self/fd", "memfd"])
@pytest.mark.parametrize("way", ["plain", "deepbind", "dlmopen", "both"])
def test_the_driver_under_another_name_is_hooked(
    box: Container, drivers: dict[str, str], way: str, name: str
) -> None:
    assert box.call(f"{__name__}:pieces_from", way, drivers[name]) == [8, OUT_OF_MEMORY]
    assert box.gpu.peak_mib() <= 1024 + 300


@pytest.mark.parametrize("way", ["plain", "deepbind", "dlmopen"])
def test_a_library_that_opens_a_copy_is_held_too(
    box: Container, drivers: dict[str, str], way: str
) -> None:
    library = str(box.programs / "libfinds.so")
    found = box.call(f"{__name__}:pieces_of", way, library, FINDS_DRIVER=drivers["copy"])
    assert found == 8


def same_place(way: str, library: str) -> bool:
    """Is a library that was opened so another one than the common one?"""
    return symbol(opened("plain", library), "zlibVersion") != symbol(
        opened(way, library), "zlibVersion"
    )


def test_all_other_libraries_are_loaded_apart_as_was_asked_for(box: Container) -> None:
    found = ctypes.util.find_library("z")
    assert found
    assert box.call(f"{__name__}:same_place", "dlmopen", found)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02" + b"\xff" * 200])
def test_what_is_no_library_is_the_loaders_affair(
    box: Container, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "none.so").write_bytes(content)
    done = box.run(box.gpu.child(f"{__name__}:pieces_of", "deepbind", str(tmp_path / "none.so")))
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
