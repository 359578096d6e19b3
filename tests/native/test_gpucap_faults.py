"""SIGKILL at every step of the ledger's protocol: no deadlock, and no memory is lost."""

import re
from collections.abc import Callable

from tests.native.build import NATIVE
from tests.native.container import Container

ROUNDS = 1000


def fault_points() -> list[str]:
    """Every fault point in the sources."""
    sources = (NATIVE / "libgpucap/src").glob("*.c")
    return sorted(
        {name for file in sources for name in re.findall(r"FAULT\((\w+)\)", file.read_text())}
    )


def test_a_thousand_kills_lose_nothing(container: Callable[..., Container]) -> None:
    box = container(cap_mib=1026, faults=True)
    (box.folder / "making").mkdir()
    points = fault_points()
    done = box.run([box.programs / "killrounds", box.folder, str(ROUNDS), *points])
    assert done.returncode == 0, done.stderr
    deaths = {name: int(count) for name, count in map(str.split, done.stdout.splitlines())}
    assert deaths.pop("bad") == 0, done.stderr
    assert deaths.keys() == set(points)
    assert min(deaths.values()) >= ROUNDS // len(points) // 2, deaths
    assert sum(deaths.values()) >= ROUNDS * 0.95, deaths
    assert box.log() == []


def test_the_library_in_use_has_no_fault_points(container: Callable[..., Container]) -> None:
    box = container()
    found = box.probe("linked", "alloc", 128, GPUCAP_FAULT="take:1")
    assert found.pieces == 8
    assert b"GPUCAP_FAULT" not in box.library.read_bytes()
