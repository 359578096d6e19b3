import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from cluster.process import Process, is_alive, marked_with, send, spawn, stop


def sleeper(folder: Path) -> Process:
    return spawn(["/bin/sleep", "600"], log=folder / "sleep.log", mark=folder)


def test_a_started_program_is_alive_until_it_is_stopped(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    assert is_alive(process)
    stop([process], grace_seconds=10)
    assert not is_alive(process)


def test_a_program_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    script = f"trap '' TERM; echo > {ready}; while :; do sleep 600 & wait; done"
    process = spawn(["/bin/sh", "-c", script], log=tmp_path / "sh.log", mark=tmp_path)
    ready.read_text()  # the trap is set
    stop([process], grace_seconds=0.1)
    assert not is_alive(process)
    stop(marked_with(tmp_path), grace_seconds=0.1)  # its `sleep` ignores requests as well


def test_a_frozen_program_can_be_stopped(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    send(process, signal.SIGSTOP)
    stop([process], grace_seconds=10)
    assert not is_alive(process)


def test_an_id_that_belongs_to_another_program_now_is_left_alone(tmp_path: Path) -> None:
    process = sleeper(tmp_path)
    earlier = replace(process, start=process.start - 1)
    assert not is_alive(earlier)
    stop([earlier], grace_seconds=0)
    assert is_alive(process)
    stop([process], grace_seconds=10)


def test_programs_are_found_by_their_folder(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "ab"
    mine, other = sleeper(here), sleeper(there)
    assert marked_with(here) == [mine]
    stop([mine, other], grace_seconds=10)
    assert marked_with(here) == []


def test_a_program_is_found_as_soon_as_it_is_started(tmp_path: Path) -> None:
    for _ in range(20):
        process = sleeper(tmp_path)
        assert str(tmp_path).encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
        stop([process], grace_seconds=10)


def test_output_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "echo.log"
    process = spawn(["/bin/sh", "-c", "echo out; echo err >&2"], log=log, mark=tmp_path)
    os.waitpid(process.pid, 0)
    assert log.read_text() == "out\nerr\n"


def test_a_program_is_its_own_session(tmp_path: Path) -> None:
    """Ctrl-C in the terminal that started a cluster must not reach it."""
    process = sleeper(tmp_path)
    session = subprocess.check_output(["ps", "-o", "sid=", "-p", str(process.pid)], text=True)
    assert int(session) == process.pid
    stop([process], grace_seconds=10)


# Its first thread has ended, and another one still has the port: as after SIGKILL, for a moment.
HALF_ENDED = """
import ctypes, socket, threading, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_program_lives_as_long_as_one_of_its_threads(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = spawn([sys.executable, "-c", HALF_ENDED], log=log, mark=tmp_path)
    stat = Path(f"/proc/{process.pid}/stat")
    deadline = time.monotonic() + 10
    while ") Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ") Z " in stat.read_text()
    assert is_alive(process)
    stop([process], grace_seconds=5)
    assert not is_alive(process)
    socket.create_server(("127.0.0.1", int(log.read_text()))).close()
