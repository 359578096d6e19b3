"""A process of a program: does what it is told over a socket, as an answer of the driver each.

``python -m tests.native.caps_programs.actor PATH NUMBER``: the first one makes all others, by fork,
before it has called the driver. A message is an operation as JSON, perhaps with a descriptor.
"""

import _ctypes
import ctypes
import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from typing import Any

from tests.native.cuda import Cuda, Number
from tests.native.cuda_layouts import (
    AccessDesc,
    AllocationProp,
    AllocNodeParams,
    ArrayDescriptor,
    PoolProps,
)

MOST_BYTES = 4096
FILE_DESCRIPTOR, LAZY_PEER_ACCESS, THRESHOLD = 1, 1, 4
Message = dict[str, Any]


class Refused(Exception):
    """The driver said no: a CUresult."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Actor:
    """One process, from its first message to its end."""

    def __init__(self, path: str, number: int, loaded: Iterable[int] = ()) -> None:
        """``loaded``: handles of the driver's library that it has from its parent."""
        self.path, self.number = path, number
        self._loaded = list(loaded)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.connect(path)
        forks, self._forks = os.pipe()  # closed when all that this process forked have begun
        self._say({"actor": number, "pid": os.getpid()}, [forks])
        os.close(forks)
        self._cuda: Cuda | None = None
        self._primary = 0
        self._things: dict[int, Any] = {}
        self._files: dict[int, int] = {}
        self._maps: dict[int, tuple[int, int]] = {}
        self._sizes: dict[int, int] = {}
        self._threads: dict[int, queue.Queue[tuple[Message, list[int]]]] = {}

    def serve(self) -> None:
        """Until the other end is closed, or it is told to end."""
        while True:
            data, files, _, _ = socket.recv_fds(self._socket, MOST_BYTES, 1)
            if not data:
                os._exit(0)
            message = json.loads(data)
            if message["thread"] == 0:
                self._do(message, files)
            else:
                self._queue(message["thread"]).put((message, files))

    def _queue(self, thread: int) -> "queue.Queue[tuple[Message, list[int]]]":
        found = self._threads.get(thread)
        if found is None:
            found = self._threads[thread] = queue.Queue()
            threading.Thread(target=self._work, args=(found,), daemon=True).start()
        return found

    def _work(self, given: "queue.Queue[tuple[Message, list[int]]]") -> None:
        while True:
            self._do(*given.get())

    def _do(self, message: Message, files: list[int]) -> None:
        answer: Message = {"id": message["id"], "code": 0}
        given: list[int] = []
        try:
            if self._primary and self._cuda is not None:
                self._cuda.cuCtxSetCurrent(self._primary)
            found = getattr(self, f"do_{message['what']}")(message, files)
            if message["what"] == "info":
                answer["told"] = found
            elif message["what"] == "give":
                given = [found]
            elif message["what"] == "handle":
                answer["handle"] = found
        except Refused as error:
            answer["code"] = error.code
        except Exception as error:  # a mistake of the model
            answer["wrong"] = repr(error)
        self._say(answer, given)

    def _say(self, answer: Message, files: list[int] | None = None) -> None:
        socket.send_fds(self._socket, [json.dumps(answer).encode()], files or [])

    def _ask(self, name: str, *arguments: Any) -> None:
        assert self._cuda is not None
        if code := getattr(self._cuda, name)(*arguments):
            raise Refused(code)

    def _get(self, name: str, *arguments: Any) -> int:
        found = Number()
        self._ask(name, found, *arguments)
        return int(found)

    # --- processes ---

    def do_spawn(self, message: Message, files: list[int]) -> None:
        self.do_fork(message, files)

    def do_fork(self, message: Message, files: list[int]) -> None:
        if os.fork():
            return
        self._socket.close()
        for file in self._files.values():
            os.close(file)
        child = Actor(self.path, message["made"], self._loaded)
        os.close(self._forks)
        child.serve()

    def do_exec(self, message: Message, files: list[int]) -> None:
        for file in self._files.values():
            os.close(file)
        self._say({"id": message["id"], "code": 0})
        module = "tests.native.caps_programs.actor"
        os.execv(sys.executable, [sys.executable, "-m", module, self.path, str(self.number)])

    def do_exit(self, message: Message, files: list[int]) -> None:
        self._say({"id": message["id"], "code": 0})
        os._exit(0)

    def do_reopen(self, message: Message, files: list[int]) -> None:
        """The driver's library is closed, as often as it was opened here and before a fork."""
        while self._loaded:
            _ctypes.dlclose(self._loaded.pop())
        for file in self._files.values():
            os.close(file)
        self._cuda, self._primary = None, 0
        self._files, self._maps = {}, {}

    # --- contexts ---

    def do_retain(self, message: Message, files: list[int]) -> None:
        if self._cuda is None:
            self._cuda = Cuda(context=False)
            self._loaded.append(self._cuda.library._handle)
        self._ask("cuInit", 0)
        self._primary = self._get("cuDevicePrimaryCtxRetain", 0)
        self._ask("cuCtxSetCurrent", self._primary)

    def do_reset(self, message: Message, files: list[int]) -> None:
        self._primary = 0
        self._ask(
            "cuDevicePrimaryCtxReset_v2" if message["kib"] else "cuDevicePrimaryCtxRelease_v2", 0
        )

    def do_context(self, message: Message, files: list[int]) -> None:
        self._things[message["made"]] = self._get("cuCtxCreate_v2", 0, 0)
        self._ask("cuCtxPopCurrent_v2", None)

    def do_destroy_context(self, message: Message, files: list[int]) -> None:
        self._ask("cuCtxDestroy_v2", self._things.pop(message["of"]))

    # --- memory ---

    def do_alloc(self, message: Message, files: list[int]) -> None:
        self._things[message["made"]] = self._get("cuMemAlloc_v2", message["kib"] << 10)

    def do_alloc_in(self, message: Message, files: list[int]) -> None:
        self._ask("cuCtxPushCurrent_v2", self._things[message["of"]])
        try:
            self.do_alloc(message, files)
        finally:
            self._ask("cuCtxPopCurrent_v2", None)

    def do_managed(self, message: Message, files: list[int]) -> None:
        self._things[message["made"]] = self._get("cuMemAllocManaged", message["kib"] << 10, 1)

    def do_pitch(self, message: Message, files: list[int]) -> None:
        pointer, row = Number(), Number()
        self._ask("cuMemAllocPitch_v2", pointer, row, 1024, message["kib"], 4)
        self._things[message["made"]] = int(pointer)

    def do_free(self, message: Message, files: list[int]) -> None:
        self._ask("cuMemFree_v2", self._things.pop(message["of"]))

    def do_async(self, message: Message, files: list[int]) -> None:
        self._things[message["made"]] = self._get("cuMemAllocAsync", message["kib"] << 10, 0)

    def do_pool(self, message: Message, files: list[int]) -> None:
        pool = self._get("cuMemPoolCreate", ctypes.byref(PoolProps(1, 0, 1, 0)))
        self._things[message["made"]] = pool
        self._ask("cuMemPoolSetAttribute", pool, THRESHOLD, Number(message["kib"] << 10))

    def do_alloc_from(self, message: Message, files: list[int]) -> None:
        pool = self._things[message["of"]]
        self._things[message["made"]] = self._get(
            "cuMemAllocFromPoolAsync", message["kib"] << 10, pool, 0
        )

    def do_trim(self, message: Message, files: list[int]) -> None:
        self._ask("cuMemPoolTrimTo", self._things[message["of"]], 0)

    def do_destroy_pool(self, message: Message, files: list[int]) -> None:
        self._ask("cuMemPoolDestroy", self._things.pop(message["of"]))

    def do_sync(self, message: Message, files: list[int]) -> None:
        self._ask("cuCtxSynchronize")

    def do_array(self, message: Message, files: list[int]) -> None:
        shape = ArrayDescriptor(1024, message["kib"], 0, 1, 1, 0)
        self._things[message["made"]] = self._get("cuArray3DCreate_v2", ctypes.byref(shape))

    def do_destroy_array(self, message: Message, files: list[int]) -> None:
        self._ask("cuArrayDestroy", self._things.pop(message["of"]))

    # --- graphs and modules ---

    def do_graph(self, message: Message, files: list[int]) -> None:
        made = self._get("cuGraphCreate", 0)
        params = AllocNodeParams(PoolProps(1, 0, 1, 0), bytes=message["kib"] << 10)
        self._ask("cuGraphAddMemAllocNode", Number(), made, None, 0, ctypes.byref(params))
        ready = self._get("cuGraphInstantiateWithFlags", made, 0)
        self._things[message["made"]] = made, ready, int(params.pointer)

    def do_launch(self, message: Message, files: list[int]) -> None:
        self._ask("cuGraphLaunch", self._things[message["of"]][1], 0)

    def do_free_graph(self, message: Message, files: list[int]) -> None:
        self._ask("cuMemFree_v2", self._things[message["of"]][2])

    def do_destroy_graph(self, message: Message, files: list[int]) -> None:
        made, ready, _ = self._things.pop(message["of"])
        self._ask("cuGraphExecDestroy", ready)
        self._ask("cuGraphDestroy", made)

    def do_trim_graphs(self, message: Message, files: list[int]) -> None:
        self._ask("cuDeviceGraphMemTrim", 0)

    def do_module(self, message: Message, files: list[int]) -> None:
        self._things[message["made"]] = self._get("cuModuleLoadData", b".version 8.0\n")

    def do_unload(self, message: Message, files: list[int]) -> None:
        self._ask("cuModuleUnload", self._things.pop(message["of"]))

    # --- physical memory ---

    def _create(self, message: Message, handle_types: int) -> None:
        size = max(2, -(-message["kib"] // 2048) * 2) << 20
        wanted = ctypes.byref(AllocationProp(1, handle_types, 1, 0))
        self._things[message["made"]] = [self._get("cuMemCreate", size, wanted, 0)]
        self._sizes[message["made"]] = size

    def do_vmm(self, message: Message, files: list[int]) -> None:
        self._create(message, 0)

    def do_exportable(self, message: Message, files: list[int]) -> None:
        self._create(message, FILE_DESCRIPTOR)

    def do_map(self, message: Message, files: list[int]) -> None:
        number = message["of"]
        size, handle = self._sizes[number], self._things[number][-1]
        address = self._get("cuMemAddressReserve", size, 0, 0, 0)
        self._ask("cuMemMap", address, size, 0, handle, 0)
        self._ask("cuMemSetAccess", address, size, ctypes.byref(AccessDesc(1, 0, 3)), 1)
        self._maps[number] = address, size

    def do_unmap(self, message: Message, files: list[int]) -> None:
        address, size = self._maps.pop(message["of"])
        self._ask("cuMemUnmap", address, size)
        self._ask("cuMemAddressFree", address, size)

    def do_keep(self, message: Message, files: list[int]) -> None:
        address, _ = self._maps[message["of"]]
        handle = self._get("cuMemRetainAllocationHandle", address)
        self._things.setdefault(message["of"], []).append(handle)

    def do_release(self, message: Message, files: list[int]) -> None:
        self._ask("cuMemRelease", self._things[message["of"]].pop())

    def do_export(self, message: Message, files: list[int]) -> None:
        file = ctypes.c_int()
        handle = self._things[message["of"]][-1]
        self._ask("cuMemExportToShareableHandle", ctypes.byref(file), handle, FILE_DESCRIPTOR, 0)
        self._files[message["of"]] = file.value

    def do_close(self, message: Message, files: list[int]) -> None:
        os.close(self._files.pop(message["of"]))
        if self._cuda is not None:
            self._ask("cuCtxGetCurrent", Number())  # the driver looks at what is closed

    def do_give(self, message: Message, files: list[int]) -> int:
        """The descriptor, for another process."""
        return self._files[message["of"]]

    def do_import(self, message: Message, files: list[int]) -> None:
        try:
            handle = self._get("cuMemImportFromShareableHandle", files[0], FILE_DESCRIPTOR)
        finally:
            os.close(files[0])
        self._things.setdefault(message["of"], []).append(handle)
        self._sizes[message["of"]] = max(2, -(-message["kib"] // 2048) * 2) << 20

    def do_handle(self, message: Message, files: list[int]) -> str:
        """An IPC handle, for another process."""
        found = ctypes.create_string_buffer(64)
        self._ask("cuIpcGetMemHandle", found, self._things[message["of"]])
        return found.raw.hex()

    def do_open(self, message: Message, files: list[int]) -> None:
        class Handle(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_ubyte * 64)]

        handle = Handle.from_buffer_copy(bytes.fromhex(message["handle"]))
        self._things[message["made"]] = self._get("cuIpcOpenMemHandle_v2", handle, LAZY_PEER_ACCESS)

    def do_close_ipc(self, message: Message, files: list[int]) -> None:
        self._ask("cuIpcCloseMemHandle", self._things.pop(message["of"]))

    def do_info(self, message: Message, files: list[int]) -> tuple[int, int]:
        """What it is told of memory: free, total."""
        free, total = Number(), Number()
        self._ask("cuMemGetInfo_v2", free, total)
        return int(free), int(total)


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    Actor(sys.argv[1], int(sys.argv[2])).serve()
