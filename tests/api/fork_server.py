"""A program that has imported gpu-scheduler once, and forks it for a test run that asks.

An import costs two core-seconds, a fork a hundredth of that. Each request is one message on a
socket: arguments and environment as JSON, with the descriptors of standard output and error, and of
a pipe that tells how the program ended. The server has no thread, event loop or connection that a
fork would share. It ends, and kills what it has started, when the other end of the socket closes.

    fork_server.py DESCRIPTOR MODULE…
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

MOST_BYTES = 1 << 17  # of a message; an environment has some thousand


@dataclass(frozen=True, slots=True)
class Child:
    """A program that runs."""

    pid: int
    ended: int  # readable once it has: pidfd_open(2)
    told: int  # the pipe that its exit code is written to


@dataclass(frozen=True, slots=True)
class Start:
    """What a child becomes."""

    arguments: list[str]
    environment: dict[str, str]
    output: tuple[int, int]  # descriptors of standard output and error


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
                message, descriptors, _, _ = socket.recv_fds(asked, MOST_BYTES, 3)
                if not message:
                    for child in children.values():
                        os.kill(child.pid, signal.SIGKILL)
                    return None
                *output, told = descriptors
                pid = os.fork()
                if pid == 0:
                    for child in children.values():
                        os.close(child.ended)
                        os.close(child.told)
                    os.close(told)
                    asked.close()
                    arguments, environment = json.loads(message)
                    return Start(arguments, environment, (output[0], output[1]))
                for each in output:
                    os.close(each)
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
    """Run as ``python -m gpu_scheduler.main ARGUMENTS`` would."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for theirs, ours in enumerate((nothing, *start.output)):
        os.dup2(ours, theirs)
        os.close(ours)
    os.environ.clear()
    os.environ.update(start.environment)
    program = importlib.import_module("gpu_scheduler.main")
    sys.argv = [str(program.__file__), *start.arguments]
    program.main()


def main() -> None:
    for name in sys.argv[2:]:
        importlib.import_module(name)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()  # a collection in a child would copy every page that it looks at
    asked = socket.socket(fileno=int(sys.argv[1]))
    if (start := serve(asked)) is not None:
        become(start)


if __name__ == "__main__":
    main()
