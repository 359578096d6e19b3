"""What a process without a slot in the ledger holds is charged to its container by the agent."""

import os
import signal
from pathlib import Path

import pytest
from tests.native.agent_node import AgentNode
from tests.native.container import Container
from tests.native.cuda import OUT_OF_MEMORY
from tests.native.fake_gpu import MIB, FakeGPU
from tests.native.partner import Partner

from gpu_scheduler.agent import ledger

pytestmark = pytest.mark.library_first

CAP, CONTEXT = 2048, 300


@pytest.fixture
def box(gpu: FakeGPU, programs: Path, tmp_path: Path) -> Container:
    """Whose state folder is where a container has it."""
    folder = (tmp_path / "root").joinpath(*ledger.FOLDER[:-1])
    return Container(gpu, folder, cap_mib=CAP, context_mib=CONTEXT)


def look(pids: list[int], root: str, times: int) -> list[int]:
    """Looks of the agent; what the library is told of processes without a slot, MiB."""
    node = AgentNode(dict.fromkeys(pids, 1), {1: CAP}, roots=dict.fromkeys(pids, root))
    node.look(times)
    with ledger.open_inside(Path(root)) as opened:
        at = ledger.UNSLOTTED_AT
        return [int.from_bytes(opened._read(at, 8), "little") // MIB]


def agent_looks(box: Container, *pids: int, times: int = 1) -> int:
    root = str(box.folder.parents[1])
    (found,) = box.gpu.call(f"{__name__}:look", list(pids), root, times)
    return int(found)


def holds(box: Container, how: str) -> Partner:
    """A process with a context and 800 MiB that the library does not count."""
    hidden = {"LD_PRELOAD": ""} if how == "without the library" else {}
    holder = Partner(box, **hidden)
    holder.allocate(800)
    path = box.state / "ledger"
    if how == "removed":
        path.unlink()
    elif how == "truncated":
        os.truncate(path, 0)
    elif how == "replaced":
        path.with_suffix(".new").write_bytes(b"x" * ledger.FILE_BYTES)
        path.with_suffix(".new").rename(path)
    return holder


@pytest.mark.parametrize("how", ["without the library", "removed", "truncated", "replaced"])
def test_the_others_get_what_is_left(box: Container, how: str) -> None:
    with holds(box, how) as holder, Partner(box) as other:
        assert agent_looks(box, holder.pid, other.pid) == CONTEXT + 800
        left = CAP - 2 * CONTEXT - 800
        assert other.free_mib() == left
        assert other.allocate_answer(left + 2) == OUT_OF_MEMORY
        other.allocate(left)
        holder.kill()
        assert agent_looks(box, other.pid) == 0
        assert other.free_mib() == CONTEXT + 800


def test_who_calls_again_is_charged_once(box: Container) -> None:
    with holds(box, "removed") as holder, Partner(box) as other:
        agent_looks(box, holder.pid, other.pid)
        holder.allocate(2)
        assert agent_looks(box, holder.pid, other.pid, times=3) == 0
        assert other.free_mib() == CAP - 2 * CONTEXT - 802


def test_what_a_stopped_agent_said_is_old_after_a_while(box: Container) -> None:
    with holds(box, "without the library") as holder, Partner(box) as other:
        agent_looks(box, holder.pid, other.pid)
        path = box.state / "ledger"
        with path.open("r+b") as file:
            file.seek(ledger.UNSLOTTED_UNTIL_AT)
            file.write((1).to_bytes(8, "little"))
        assert other.free_mib() == CAP - CONTEXT


def test_a_stopped_process_is_no_dead_one(box: Container) -> None:
    with holds(box, "replaced") as holder, Partner(box) as other:
        os.kill(holder.pid, signal.SIGSTOP)
        assert agent_looks(box, holder.pid, other.pid) == CONTEXT + 800
