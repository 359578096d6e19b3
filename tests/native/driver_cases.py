"""What `test_fake_cuda` lets processes of their own do; no pytest here, it is slow to import."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.native import cuda as codes
from tests.native.cuda import MIB, SUCCESS, Cuda, Number


def say(word: object) -> None:
    """Tell the test, which reads a line."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def out_of_order() -> dict[str, int]:
    cuda = Cuda(context=False)
    seen = {"before init": cuda.cuMemAlloc_v2(Number(), MIB)}
    seen["flags"] = cuda.cuInit(1)
    cuda.ok("cuInit", 0)
    seen["no context"] = cuda.cuMemAlloc_v2(Number(), MIB)
    seen["no such device"] = cuda.cuCtxCreate_v2(Number(), 0, 7)
    context = cuda.get("cuCtxCreate_v2", 0, 0)
    seen["null"] = cuda.cuMemAlloc_v2(None, MIB)
    seen["no bytes"] = cuda.cuMemAlloc_v2(Number(), 0)
    seen["unknown pointer"] = cuda.cuMemFree_v2(0xDEAD000)
    seen["null info"] = cuda.cuMemGetInfo_v2(None, None)
    cuda.ok("cuCtxDestroy_v2", context)
    seen["context gone"] = cuda.cuMemAlloc_v2(Number(), MIB)
    seen["destroyed twice"] = cuda.cuCtxDestroy_v2(context)
    return seen


def describe() -> list[Any]:
    cuda = Cuda()
    name, uuid, major = ctypes.create_string_buffer(96), (ctypes.c_ubyte * 16)(), ctypes.c_int()
    cuda.ok("cuDeviceGetName", name, 96, 0)
    cuda.ok("cuDeviceGetUuid_v2", uuid, 0)
    cuda.ok("cuDeviceGetAttribute", ctypes.byref(major), 75, 0)
    total = cuda.get("cuDeviceTotalMem_v2", 0)
    return [name.value.decode(), bytes(uuid).hex(), major.value, total // MIB]


def visible() -> list[int] | int:
    cuda = Cuda(context=False)
    result = cuda.cuInit(0)
    if result != SUCCESS:
        return result
    count = ctypes.c_int()
    cuda.ok("cuDeviceGetCount", ctypes.byref(count))
    found = []
    for ordinal in range(count.value):
        uuid = (ctypes.c_ubyte * 16)()
        cuda.ok("cuDeviceGetUuid_v2", uuid, ordinal)
        found.append(bytes(uuid)[3])
    return found


def resolve(name: str, version: int, flags: int) -> list[Any]:
    cuda = Cuda(context=False)
    address, status = Number(), ctypes.c_int(-1)
    query = (name.encode(), address, version, flags)
    result = cuda.cuGetProcAddress_v2(*query, ctypes.byref(status))
    older = cuda.cuGetProcAddress(*query)
    names = [
        symbol
        for symbol in exported(Path(os.environ["LD_LIBRARY_PATH"]) / "libcuda.so.1")
        if int(address)
        and ctypes.cast(getattr(cuda.library, symbol), ctypes.c_void_p).value == int(address)
    ]
    return [result, status.value, older, *names]


def exported(library: Path) -> list[str]:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return [line.split()[-1] for line in lines if " T " in line]


def holds(mib: int, index: int = 0) -> None:
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    cuda.ok("cuCtxCreate_v2", Number(), 0, index)
    result = cuda.cuMemAlloc_v2(Number(), mib * MIB)
    say(result)
    input()


def asks(mib: int) -> int:
    return Cuda().cuMemAlloc_v2(Number(), mib * MIB)


def forks() -> list[Any]:
    cuda = Cuda()
    before = cuda.free_mib()
    cuda.allocate(100)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        inherited = cuda.cuMemAlloc_v2(Number(), MIB)
        again = cuda.cuInit(0)
        no_context = cuda.cuMemAlloc_v2(Number(), MIB)
        cuda.ok("cuCtxCreate_v2", Number(), 0, 0)
        cuda.allocate(10)
        free = int(before - cuda.free_mib())
        os.write(writing, f"{inherited} {again} {no_context} {free}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    told = [int(word) for word in os.read(reading, 100).split()]
    return [*told, before - cuda.free_mib()]


def many(processes: int) -> list[int]:
    """Hold 1 MiB in each of so many forked processes at once; how many succeeded."""
    go, went = os.pipe(), os.pipe()
    done, ready = os.pipe()
    for _ in range(processes):
        if os.fork() == 0:
            os.close(went[1])
            cuda = Cuda(context=False)
            results = [cuda.cuInit(0), cuda.cuCtxCreate_v2(Number(), 0, 0)]
            results.append(cuda.cuMemAlloc_v2(Number(), 2 * MIB))
            os.write(ready, b"x" if not any(results) else b"-")
            os.read(went[0], 1)  # until the parent closes it
            os._exit(0)
    answers = b""
    while len(answers) < processes:
        answers += os.read(done, processes)
    probe = Cuda()
    held = 40448 - probe.free_mib()
    os.close(went[1])
    for _ in range(processes):
        os.wait()
    os.close(go[0])
    return [answers.count(b"x"), int(held), int(40448 - probe.free_mib())]


def threads() -> int:
    import threading

    cuda = Cuda()
    context = cuda.get("cuCtxGetCurrent")
    before = cuda.free_mib()
    failures = []

    def work() -> None:
        if cuda.cuMemAlloc_v2(Number(), MIB) != codes.INVALID_CONTEXT:
            failures.append("a new thread has no context")
        cuda.ok("cuCtxSetCurrent", context)
        for _ in range(200):
            cuda.ok("cuMemFree_v2", cuda.allocate(3))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return len(failures) + int(before - cuda.free_mib())


def survives_a_failure() -> list[int]:
    cuda = Cuda()
    say("ready")
    results = []
    for _ in range(3):
        input()
        results.append(cuda.cuMemAlloc_v2(Number(), MIB))
        say(results[-1])
    return results


def errors() -> list[str]:
    cuda = Cuda(context=False)
    found = []
    for function in ("cuGetErrorName", "cuGetErrorString"):
        text = ctypes.c_char_p()
        cuda.ok(function, 2, ctypes.byref(text))
        found.append((text.value or b"").decode())
    return found


def killed_at_work(rounds: int) -> list[float]:
    """Kill processes while they allocate and free; what is used then, and what can be had."""
    for number in range(rounds):
        workers = []
        for _ in range(4):
            worker = os.fork()
            if worker == 0:
                cuda = Cuda()
                while True:
                    cuda.ok("cuMemFree_v2", cuda.allocate(64))
            workers.append(worker)
        time.sleep(0.02 + number % 5 / 1000)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
    cuda = Cuda()
    free = cuda.free_mib()
    cuda.allocate(free)
    return [free, cuda.free_mib()]
