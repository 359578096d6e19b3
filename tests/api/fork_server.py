"""A program that has imported the operator once, and forks it for a test run that asks.

An import costs two core-seconds, a fork a hundredth of that. Each request is one message on a
socket: the environment as JSON, with the descriptors of the log and of a pipe that tells how the
operator ended. The server has no thread, event loop or socket of its own that a fork would share.
It ends, and kills what it has started, when the other end of the socket closes.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import threading
from dataclasses import dataclass

# What ``gpu-scheduler operator`` imports on its way to leading; each imports many more.
MODULES = (
    "gpu_scheduler.main",
    "gpu_scheduler.cli.commands.operator",
    "gpu_scheduler.replica",
    "gpu_scheduler.kube.config",
    "uvloop",
)
MOST_BYTES = 1 << 17  # of a message; an environment has some thousand


@dataclass(frozen=True, slots=True)
class Child:
    """An operator that runs."""

    pid: int
    ended: int  # readable once it has: pidfd_open(2)
    told: int  # the pipe that its exit code is written to


@dataclass(frozen=True, slots=True)
class Start:
    """What a child becomes."""

    environment: dict[str, str]
    log: int


def serve(asked: socket.socket) -> Start | None:
    """Returns in each child, with what it is to become, and in the server at its end."""
    children: dict[int, Child] = {}  # by the descriptor that tells of the end
    with selectors.DefaultSelector() as events:
        events.register(asked, selectors.EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.fd in children:
                    events.unregister(key.fd)
                    _tell_end(children.pop(key.fd))
                    continue
                message, descriptors, _, _ = socket.recv_fds(asked, MOST_BYTES, 2)
                if not message:
                    for child in children.values():
                        os.kill(child.pid, signal.SIGKILL)
                    return None
                log, told = descriptors
                pid = os.fork()
                if pid == 0:
                    for child in children.values():
                        os.close(child.ended)
                        os.close(child.told)
                    os.close(told)
                    asked.close()
                    return Start(json.loads(message), log)
                os.close(log)
                child = Child(pid, os.pidfd_open(pid), told)
                children[child.ended] = child
                events.register(child.ended, selectors.EVENT_READ)
                asked.send(str(pid).encode())


def _tell_end(child: Child) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    try:
        os.write(child.told, str(code).encode())
    except BrokenPipeError:
        pass  # nobody wants to know
    os.close(child.told)
    os.close(child.ended)


def become(start: Start) -> None:
    """Run the operator as ``python -m gpu_scheduler.main operator`` would."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (start.log, 1), (start.log, 2)):
        os.dup2(ours, theirs)
    os.close(nothing)
    os.close(start.log)
    os.environ.clear()
    os.environ.update(start.environment)
    program = importlib.import_module("gpu_scheduler.main")
    sys.argv = [str(program.__file__), "operator"]
    program.main()


def main() -> None:
    for name in MODULES:
        importlib.import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it looks at
    asked = socket.socket(fileno=int(sys.argv[1]))
    if (start := serve(asked)) is not None:
        become(start)


if __name__ == "__main__":
    main()
