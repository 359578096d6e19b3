"""gpu-scheduler, forked from a server that has imported it: the test run's end of that.

``Forked`` has what a test does with a ``subprocess.Popen``: it polls, waits, and sends signals.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from tests.api.tenant import GIVE_UP_SECONDS

SERVER = Path(__file__).with_name("fork_server.py")
OPERATOR = SERVER.parents[2] / "operator"
Done = subprocess.CompletedProcess[str]
# OpenBLAS makes a thread for each core when it is imported, and a fork would lose them.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


# What each imports on its way; each of these imports many more.
FOR_OPERATORS = (
    "gpu_scheduler.main",
    "gpu_scheduler.cli.commands.operator",
    "gpu_scheduler.replica",
    "gpu_scheduler.kube.config",
    "uvloop",
)
FOR_COMMANDS = (
    "gpu_scheduler.main",
    "gpu_scheduler.cli.commands.simulate",
    "gpu_scheduler.cli.commands.sweep",
    "gpu_scheduler.kube.command_client",
    "gpu_scheduler.kube.config",
    "kubernetes.client",
    "kubernetes.config",
)


class Forked:
    """One process; ``returncode`` is as a ``Popen`` has it."""

    def __init__(self, pid: int, told: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told  # the server writes here how it ended
        self._lock = threading.Lock()  # of who reads that; a test may wait and kill in two threads
        weakref.finalize(self, os.close, told)

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended.

        Raises:
            TimeoutExpired: it lives on.
        """
        code = self._look(timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired("a forked program", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Signal it, unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            with self._lock:
                if self.returncode is None:
                    told = os.read(self._told, 32)
                    assert told, "the server that forked it has died"
                    self.returncode = int(told)
        return self.returncode


class _Server:
    """The process that forks; it ends with this one, however this one ends."""

    def __init__(self, modules: Iterable[str]) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno()), *modules],
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(OPERATOR)},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # ^C is for the test run
            )

    def fork(
        self, arguments: Sequence[str], environment: Mapping[str, str], *output: IO[bytes]
    ) -> Forked:
        told, tells = os.pipe()
        message = json.dumps([arguments, dict(environment)]).encode()
        with self._lock:
            socket.send_fds(self._socket, [message], [*(o.fileno() for o in output), tells])
            os.close(tells)
            pid = self._socket.recv(32)
        assert pid, "the server that forks has died"
        return Forked(int(pid), told)

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def _server(modules: tuple[str, ...]) -> _Server:
    server = _Server(modules)
    atexit.register(server.end)
    return server


def operator(environment: Mapping[str, str], log: IO[bytes]) -> Forked:
    """Start an operator with this environment, which logs there."""
    return _server(FOR_OPERATORS).fork(["operator"], environment, log, log)


def command(arguments: Sequence[str], environment: Mapping[str, str]) -> Done:
    """What ``kubectl gpu ARGUMENTS`` prints, and how it ends."""
    with TemporaryFile() as out, TemporaryFile() as err:
        code = _server(FOR_COMMANDS).fork(arguments, environment, out, err).wait(GIVE_UP_SECONDS)
        texts = [file.seek(0) or file.read().decode() for file in (out, err)]
    return Done(arguments, code, *texts)
