import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.builders import POD, cgroup, proc

from gpu_scheduler.agent.kill import kill
from gpu_scheduler.agent.procfs import Process, ProcFS
from gpu_scheduler.agent.sampler import DeviceProcess


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def as_seen(pid: int, started: int = 7) -> DeviceProcess:
    return DeviceProcess(pid, 1, Process(pid, started, "python", cgroup()))


def test_the_process_that_was_judged_is_killed(
    tmp_path: Path, child: "subprocess.Popen[bytes]"
) -> None:
    assert kill(proc(tmp_path, child.pid), POD, [as_seen(child.pid)]) == [child.pid]
    assert child.wait(60) == -9


@pytest.mark.parametrize("why", ["another start time", "another pod", "no pod", "gone from proc"])
def test_another_process_with_its_pid_is_not(
    tmp_path: Path, child: "subprocess.Popen[bytes]", why: str
) -> None:
    procfs = proc(tmp_path, child.pid)
    if why == "another start time":
        procfs = proc(tmp_path, child.pid, started=8)
    elif why == "another pod":
        procfs = proc(tmp_path, child.pid, text=cgroup("9" * 32))
    elif why == "no pod":
        procfs = proc(tmp_path, child.pid, text="0::/init.scope")
    else:
        procfs = ProcFS(tmp_path / "elsewhere")
    assert kill(procfs, POD, [as_seen(child.pid)]) == []
    assert child.poll() is None


def test_a_process_that_is_gone_is_no_error(
    tmp_path: Path, child: "subprocess.Popen[bytes]"
) -> None:
    procfs = proc(tmp_path, child.pid)
    child.kill()
    child.wait()
    assert kill(procfs, POD, [as_seen(child.pid), replace(as_seen(1), process=None)]) == []
