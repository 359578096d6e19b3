"""Programs that export the driver's functions themselves and look each up when it is first called.

TensorFlow does. A hook that takes such a function for the next one in the chain is asked again by
it, and must reach the driver then.
"""

import ctypes
import os
import subprocess
from collections.abc import Callable

import pytest
from tests.native.container import Container

NOT_INITIALIZED = 3
AS_A_LIBRARY = {"local": os.RTLD_LOCAL, "global": os.RTLD_GLOBAL, "deepbind": os.RTLD_DEEPBIND}


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def asks(library: str, flag: int, mib: int, opened: int) -> int:
    """Let a library with such functions ask."""
    return int(ctypes.CDLL(library, mode=flag).ask(ctypes.c_size_t(mib), opened))


def command(box: Container, stub: str, way: str, opened: int) -> list[str]:
    """A program that has the functions, or loads the library that has them."""
    if way in AS_A_LIBRARY:
        library = str(box.programs / f"lib{stub}.so")
        return box.gpu.child(f"{__name__}:asks", library, AS_A_LIBRARY[way], 128, opened)
    name = {"program": stub, "linked": f"{stub}-linked"}[way]
    return [str(box.programs / name), "128", str(opened)]


@pytest.mark.parametrize("opened", [0, 1])
@pytest.mark.parametrize("stub", ["stub", "stub-init"])
@pytest.mark.parametrize("way", [*AS_A_LIBRARY, "program", "linked"])
def test_functions_of_the_drivers_names_lead_to_the_driver_and_its_cap(
    box: Container, way: str, stub: str, opened: int
) -> None:
    try:
        done = box.run(command(box, stub, way, opened), seconds=20)
    except subprocess.TimeoutExpired:
        pytest.fail("the program and the library ask each other for ever")
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    assert done.stdout.splitlines()[0] == f"{NOT_INITIALIZED} 1024 8"
