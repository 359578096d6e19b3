"""As in a container: named in /etc/ld.so.preload, the cap in /etc, whatever the environment is."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.container import Container, seen

pytestmark = pytest.mark.library_first

# Its own /etc and /opt, as mounts that nobody else sees; then a command with an empty environment.
SCRIPT = """
set -e
mount --bind "$0" /etc
mount -t tmpfs none /opt
[ "$STATE" = absent ] || mkdir -p /opt/gpu-scheduler/state
env -i FAKEGPU_DIR="$FAKEGPU_DIR" FAKEGPU_DEV=/nonexistent LD_LIBRARY_PATH="$FAKE" "$@"
[ "$STATE" = absent ] || ls /opt/gpu-scheduler/state >&2
"""


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=None)


@pytest.fixture
def etc(box: Container, tmp_path: Path) -> Path:
    """A folder to be /etc: what programs need of the real one, and the files of a GPU container."""
    folder = tmp_path / "etc"
    (folder / "gpu-scheduler").mkdir(parents=True)
    (folder / "gpu-scheduler/memory-limit-mib").write_text("8192")
    (folder / "ld.so.preload").write_text(f"{box.library}\n")
    for name in ("passwd", "group", "ld.so.cache"):
        shutil.copy(f"/etc/{name}", folder)
    return folder


def run(box: Container, etc: Path, *command: str, state: str = "") -> tuple[str, str]:
    """Run it there: what it printed, and the files in the state folder."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    done = box.gpu.run(
        [*unshare, "sh", "-c", SCRIPT, etc, *command], FAKE=str(box.gpu.build.fakegpu), STATE=state
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_an_empty_environment_keeps_the_cap(box: Container, etc: Path) -> None:
    printed, files = run(box, etc, *box.probe_command("dlopen", "alloc", 512))
    found = seen(printed)
    assert (found.pieces, found.total_mib) == (15, 8192)  # the sixteenth: the context's reserve
    assert files == "ledger\n"


@pytest.mark.parametrize(
    "line",
    [
        "GPUCAP_LIMIT_FILE=/etc/other",
        "GPUCAP_LIMIT_FILE=/nowhere",
        "GPU_MEMORY_LIMIT_MIB=9000",
        "GPUCAP_STATE_DIR=/opt/other",
        "GPUCAP_CONTEXT_MIB=0",
        "GPUCAP_CONTEXT_MIB=1",
    ],
)
def test_a_line_of_the_environment_moves_nothing(box: Container, etc: Path, line: str) -> None:
    (etc / "other").write_text("30000")
    more = ["GPU_MEMORY_LIMIT_MIB=9000"] if "LIMIT_FILE" in line else []
    command = box.probe_command("dlopen", "alloc", 512)
    printed, files = run(box, etc, "env", line, *more, *command)
    found = seen(printed)
    assert (found.pieces, found.total_mib, files) == (15, 8192, "ledger\n")


def test_a_limit_that_is_there_and_holds_no_number_gives_out_nothing(
    box: Container, etc: Path
) -> None:
    (etc / "gpu-scheduler/memory-limit-mib").write_text("")
    command = box.probe_command("dlopen", "alloc", 512)
    printed, files = run(box, etc, "env", "GPU_MEMORY_LIMIT_MIB=9000", *command)
    assert (seen(printed).pieces, files) == (0, "ledger\nlibgpucap.log\n")


def test_a_process_without_cuda_touches_nothing(box: Container, etc: Path) -> None:
    printed, files = run(box, etc, "sh", "-c", "cat /etc/gpu-scheduler/memory-limit-mib")
    assert (printed, files) == ("8192", "")


def test_a_container_without_its_state_folder_gives_out_nothing_and_says_why(
    box: Container, etc: Path
) -> None:
    """As in a sandbox with /etc and without /opt: each process would have the whole cap."""
    command = box.probe_command("dlopen", "alloc", 512)
    script = '"$@" || echo refused'
    printed, said = run(box, etc, "sh", "-c", script, "sh", *command, state="absent")
    assert printed == "refused\n"
    assert said.startswith(
        "libgpucap: ledger: /opt/gpu-scheduler/state/ledger: its folder cannot be opened "
        "(error 2): memory is refused until it can be used\n"
    )
