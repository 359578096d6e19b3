"""The driver's libraries are closed and opened again, where they cannot lie at the same address."""

import shutil
from collections.abc import Callable

import pytest
from tests.native.container import Container

LIBRARIES = ["libcuda.so.1", "libnvidia-ml.so.1"]


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=1024)


def reopen(box: Container, first: str, second: str, *mib: str, **environment: str) -> list[str]:
    """What programs/reopen printed; without the library where its path is empty."""
    done = box.run([box.programs / "reopen", first, second, *mib], **environment)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    assert done.stderr == "elsewhere\n"
    return done.stdout.splitlines()


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_hook_answers_as_the_driver_after_it_was_closed_and_opened(
    box: Container, library: str
) -> None:
    before = box.gpu.environment.get("LD_PRELOAD", "")
    bare = reopen(box, library, library, LD_PRELOAD=before)
    ours = reopen(box, library, library)
    assert [line for line in bare if line.startswith("second")]
    assert ours == bare


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_hook_that_was_kept_finds_no_driver_and_then_the_new_one(
    box: Container, library: str
) -> None:
    found: dict[str, dict[str, str]] = {}
    for line in reopen(box, library, library, REOPEN_KEPT="1"):
        turn, symbol, answer = line.split()
        found.setdefault(turn, {})[symbol] = answer
    not_found = "13" if "nvidia" in library else "500"
    hooked = dict.fromkeys(found["first"], not_found)
    assert found["closed"] == hooked
    assert found["kept"] == found["second"] == found["first"]


@pytest.mark.parametrize("second", ["the same", "a copy"])
def test_the_cap_holds_in_the_driver_that_was_opened_again(box: Container, second: str) -> None:
    library = str(box.gpu.build.libcuda)
    if second == "a copy":
        (box.folder / "copy").mkdir()
        library = str(shutil.copy(library, str(box.folder / "copy")))
    assert reopen(box, "libcuda.so.1", library, "128")[-1] == "pieces 8"


def test_what_was_held_when_it_was_closed_stays_charged(box: Container) -> None:
    printed = reopen(box, "libcuda.so.1", "libcuda.so.1", "128", REOPEN_IN_USE="1")
    assert [line for line in printed if line.startswith("pieces")] == ["pieces first 8", "pieces 0"]


def test_a_library_that_is_hooked_by_another_preloaded_one_as_well(box: Container) -> None:
    preload = f"{box.environment['LD_PRELOAD']}:{box.programs / 'libinterposer.so'}"
    printed = reopen(box, "libcuda.so.1", "libcuda.so.1", "128", LD_PRELOAD=preload)
    assert printed[-1] == "pieces 8"
