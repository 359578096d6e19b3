"""A process that does with the driver what a test tells it, call by call, beside others like it.

with Partner(gpu) as maker, Partner(gpu) as importer:
    handle = maker.create(512)
    file = maker.export(handle)
    imported = importer.import_(hand_over(maker, file, importer))
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from tests.native.container import Container
from tests.native.cuda import MIB, Cuda, Number
from tests.native.cuda_layouts import AllocationProp
from tests.native.fake_gpu import FakeGPU

FILE_DESCRIPTOR = 1


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class Calls:
    """What can be asked of it; each returns what JSON can hold."""

    def __init__(self) -> None:
        self.cuda = Cuda()

    def create(self, mib: int) -> int:
        """Physical memory that can be exported: its handle."""
        wanted = ctypes.byref(AllocationProp(1, FILE_DESCRIPTOR, 1, 0))
        return self.cuda.get("cuMemCreate", mib * MIB, wanted, 0)

    def create_answer(self, mib: int) -> int:
        wanted = ctypes.byref(AllocationProp(1, FILE_DESCRIPTOR, 1, 0))
        return self.cuda.cuMemCreate(Number(), mib * MIB, wanted, 0)

    def export(self, handle: int) -> int:
        file = ctypes.c_int()
        self.cuda.ok("cuMemExportToShareableHandle", ctypes.byref(file), handle, 1, 0)
        return file.value

    def import_(self, file: int) -> int:
        return self.cuda.get("cuMemImportFromShareableHandle", file, 1)

    def import_answer(self, file: int) -> int:
        return self.cuda.cuMemImportFromShareableHandle(Number(), file, 1)

    def release(self, handle: int) -> None:
        self.cuda.ok("cuMemRelease", handle)

    def map(self, handle: int, mib: int) -> int:
        at = self.cuda.get("cuMemAddressReserve", mib * MIB, 0, 0, 0)
        self.cuda.ok("cuMemMap", at, mib * MIB, 0, handle, 0)
        return at

    def unmap(self, at: int, mib: int) -> None:
        self.cuda.ok("cuMemUnmap", at, mib * MIB)

    def dup(self, file: int) -> int:
        return os.dup(file)

    def close(self, file: int) -> None:
        os.close(file)

    def send(self, file: int, name: str) -> None:
        """Over a socket, by its name; nobody needs to have received it yet."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.connect(f"\0{name}")
            socket.send_fds(end, [b"x"], [file])

    def listen(self, name: str) -> None:
        self.end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.end.bind(f"\0{name}")

    def receive(self) -> int:
        return int(socket.recv_fds(self.end, 1, 1)[1][0])

    def hang_up(self) -> None:
        """What is on its way is lost."""
        self.end.close()

    def allocate(self, mib: float) -> int:
        return self.cuda.allocate(mib)

    def allocate_answer(self, mib: int) -> int:
        return self.cuda.cuMemAlloc_v2(Number(), mib * MIB)

    def free(self, pointer: int) -> None:
        self.cuda.ok("cuMemFree_v2", pointer)

    def free_answer(self, pointer: int) -> int:
        return self.cuda.cuMemFree_v2(pointer)

    def ipc_handle(self, pointer: int) -> str:
        handle = ctypes.create_string_buffer(64)
        self.cuda.ok("cuIpcGetMemHandle", handle, pointer)
        return handle.raw.hex()

    def ipc_open(self, handle: str) -> list[int]:
        pointer = Number()
        given = IpcHandle.from_buffer_copy(bytes.fromhex(handle))
        answer = self.cuda.library.cuIpcOpenMemHandle_v2(ctypes.byref(pointer), given, 1)
        return [answer, int(pointer)]

    def ipc_close(self, pointer: int) -> None:
        self.cuda.ok("cuIpcCloseMemHandle", pointer)

    def new_context(self) -> int:
        return self.cuda.get("cuCtxCreate_v2", 0, 0)

    def new_context_answer(self) -> int:
        return self.cuda.cuCtxCreate_v2(Number(), 0, 0)

    def destroy_context(self, context: int) -> None:
        self.cuda.ok("cuCtxDestroy_v2", context)

    def fork(self) -> int:
        """A child that has what this process has open, and does nothing."""
        child = os.fork()
        if not child:
            while True:
                signal.pause()
        return child

    def end_child(self, child: int) -> None:
        os.kill(child, 9)
        os.waitpid(child, 0)

    def free_mib(self) -> float:
        return self.cuda.free_mib()


def serve() -> None:
    """Do what the lines of standard input say until it ends."""
    calls = Calls()
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        sys.stdout.write(json.dumps(getattr(calls, name)(*arguments)) + "\n")
        sys.stdout.flush()


class Partner:
    """A process at the other end; leave the block and it is killed."""

    def __init__(self, where: FakeGPU | Container, **environment: str) -> None:
        self._where = where
        command = [sys.executable, "-c", f"from {__name__} import serve; serve()"]
        self.process: subprocess.Popen[str] = where.start(command, **environment)
        self.pid = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"it ended with {self.process.wait()}"
        return line

    def call(self, name: str, *arguments: object) -> Any:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([name, arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self._line())

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.call(name, *arguments)

    def __enter__(self) -> "Partner":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def hand_over(maker: Partner, file: int, other: Partner) -> int:
    """Send a descriptor from one to the other and close it where it was: its number there."""
    name = f"{maker.pid}-{other.pid}-{time.monotonic_ns()}"
    other.listen(name)
    maker.send(file, name)
    maker.close(file)
    return int(other.receive())
