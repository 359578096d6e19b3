"""What `test_gpucap_pools` lets processes of a container do."""

import ctypes
import os
import sys
import threading

from tests.native.cuda import MIB, OUT_OF_MEMORY, Cuda, Number, wait_until_delayed
from tests.native.cuda_layouts import AllocationProp, PoolProps

FILE_DESCRIPTOR = 1
RELEASE_THRESHOLD = 4


def one_piece_of_each(pools: int) -> None:
    """Make pools and take a mebibyte from each, for as long as it works; then wait."""
    cuda, taken = Cuda(), 0
    say("ready")
    for _ in range(pools):
        pool = cuda.get("cuMemPoolCreate", ctypes.byref(PoolProps(1, 0, 1, 0)))
        if cuda.cuMemAllocFromPoolAsync(Number(), MIB, pool, 0):
            break
        taken += 1
    say(taken)


def new_pool(cuda: Cuda, keep_mib: int = 0) -> int:
    """A pool that keeps so much when it is freed."""
    pool = cuda.get("cuMemPoolCreate", ctypes.byref(PoolProps(1, 0, 1, 0)))
    cuda.ok("cuMemPoolSetAttribute", pool, RELEASE_THRESHOLD, Number(keep_mib * MIB))
    return pool


def take_at_once(threads: int, rounds: int, mib: int) -> list[int]:
    """Threads that all want what one of them has just given back; wrong answers, and what is free.

    The cap holds fewer pieces than there are threads.
    """
    cuda = Cuda()
    pool = new_pool(cuda, 1 << 20)
    wrong = 0
    context = Number()
    cuda.ok("cuCtxGetCurrent", context)
    begin, over = threading.Barrier(threads + 1), threading.Barrier(threads + 1)
    held: list[int] = []

    def work() -> None:
        nonlocal wrong
        cuda.ok("cuCtxSetCurrent", int(context))
        for _ in range(rounds):
            begin.wait()
            pointer = Number()
            answer = cuda.cuMemAllocFromPoolAsync(pointer, mib * MIB, pool, 0)
            if answer == 0:
                held.append(int(pointer))
            elif answer != OUT_OF_MEMORY:
                wrong += 1
            over.wait()

    all_threads = [threading.Thread(target=work) for _ in range(threads)]
    for thread in all_threads:
        thread.start()
    fewest = threads
    for _ in range(rounds):
        begin.wait()
        over.wait()
        fewest = min(fewest, len(held))
        while held:
            cuda.ok("cuMemFreeAsync", held.pop(), 0)
        cuda.ok("cuMemPoolTrimTo", pool, mib * MIB)
    for thread in all_threads:
        thread.join()
    cuda.ok("cuMemPoolTrimTo", pool, 0)
    return [wrong, fewest, int(cuda.free_mib())]


def free_in_two_streams() -> list[float]:
    """What is free after each of two streams, in which memory was freed, was waited for."""
    cuda = Cuda()
    streams = [cuda.get("cuStreamCreate", 0) for _ in range(2)]
    for stream in streams:
        pointer = cuda.get("cuMemAllocFromPoolAsync", 256 * MIB, new_pool(cuda), stream)
        cuda.ok("cuMemFreeAsync", pointer, stream)
    found = []
    for stream in streams:
        cuda.ok("cuStreamSynchronize", stream)
        found.append(cuda.free_mib())
    return found


def shrink_while_one_counts_on_it(mib: int) -> float:
    """What becomes free when a pool is trimmed while a call of another thread counts on what is
    idle in it."""
    cuda = Cuda()
    pool = new_pool(cuda, 1 << 20)
    context = Number()
    cuda.ok("cuCtxGetCurrent", context)
    cuda.ok("cuMemFreeAsync", cuda.get("cuMemAllocFromPoolAsync", MIB, pool, 0), 0)
    before = cuda.free_mib()  # with a chunk of the pool, which is idle

    def work() -> None:
        cuda.ok("cuCtxSetCurrent", int(context))
        cuda.get("cuMemAllocFromPoolAsync", mib * MIB, pool, 0)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until_delayed(thread)
    cuda.ok("cuMemPoolTrimTo", pool, 0)
    meanwhile = cuda.free_mib()
    thread.join()
    return meanwhile - before


def reset_with_a_pool() -> float:
    """What is free after a reset of the context with memory in a pool and in the graphs' one."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    cuda.ok("cuCtxSetCurrent", cuda.get("cuDevicePrimaryCtxRetain", 0))
    cuda.get("cuMemAllocFromPoolAsync", 512 * MIB, new_pool(cuda), 0)
    cuda.ok("cuDevicePrimaryCtxReset_v2", 0)
    cuda.ok("cuCtxSetCurrent", cuda.get("cuDevicePrimaryCtxRetain", 0))
    return cuda.free_mib()


def export_and_release(mib: int) -> list[float]:
    """Pieces that could be made, exported and released; what is free with, and without them."""
    cuda = Cuda()
    files = []
    wanted = ctypes.byref(AllocationProp(1, FILE_DESCRIPTOR, 1, 0))
    handle = Number()
    while cuda.cuMemCreate(handle, mib * MIB, wanted, 0) == 0:
        file = ctypes.c_int()
        cuda.ok("cuMemExportToShareableHandle", ctypes.byref(file), int(handle), 1, 0)
        cuda.ok("cuMemRelease", int(handle))
        files.append(file.value)
    found = [len(files), cuda.free_mib()]
    for each in files[1:]:
        os.close(each)
    again = cuda.get("cuMemCreate", mib * MIB, wanted, 0)  # the driver looks at what is closed
    cuda.ok("cuMemRelease", again)
    found.append(cuda.free_mib())
    return found


def say(word: object) -> None:
    """A line to the test, and wait for one from it."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()
    sys.stdin.readline()
