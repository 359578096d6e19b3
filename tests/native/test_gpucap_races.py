"""Threads in libgpucap under ThreadSanitizer: a lock that is left out is seen, not met by luck.

Without it such a defect shows in every other run at best: the moment in which two threads meet is
a few instructions long.
"""

import fcntl
import subprocess
from pathlib import Path

import pytest
from tests.native.build import NATIVE, SANITIZERS, NativeBuild
from tests.native.container import Container
from tests.native.cuda import MIB
from tests.native.fake_gpu import FakeGPU

CAP = 1024
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = str(NATIVE / "build" / "tsan" / "programs" / "threads")


@pytest.fixture(scope="module")
def watched() -> NativeBuild:
    """The C parts and the program with ThreadSanitizer, built if out of date."""
    sanitizer = SANITIZERS["tsan"]
    build = NativeBuild(NATIVE / "build" / "tsan", sanitizer)
    build.folder.mkdir(parents=True, exist_ok=True)
    program = [f"BUILD={build.folder}", f"EXTRA_CFLAGS={sanitizer.flags}", PROGRAM]
    with (build.folder / ".lock").open("w") as lock:  # test workers take turns
        fcntl.flock(lock, fcntl.LOCK_EX)
        for making in ([NATIVE, "tsan"], [PROGRAMS, *program]):
            done = subprocess.run(["make", "-C", *making], capture_output=True, text=True)
            assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return build


@pytest.mark.parametrize("kind", [(), ("vmm",), ("small",)], ids=["pointers", "handles", "small"])
def test_threads_read_nothing_that_another_one_writes(
    watched: NativeBuild, tmp_path: Path, kind: tuple[str, ...]
) -> None:
    gpu = FakeGPU(tmp_path / "gpu", watched, 1, 40960, 512, {})
    box = Container(gpu, tmp_path / "box", cap_mib=CAP)
    done = box.run([box.programs / "threads", "8", "300", *kind])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) == CAP * MIB
