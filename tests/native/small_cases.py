"""What `test_gpucap_small` lets processes of a container do; all return what is free, in MiB."""

import random
import subprocess
import threading

from tests.native.cuda import MIB, Cuda, Number


def by_turns(sizes: list[int]) -> list[float]:
    """After each allocation of so many bytes, then after each free in the same order."""
    cuda = Cuda()
    pointers, free = [], []
    for bytes_ in sizes:
        pointers.append(cuda.get("cuMemAlloc_v2", bytes_))
        free.append(cuda.free_mib())
    for pointer in pointers:
        cuda.ok("cuMemFree_v2", pointer)
        free.append(cuda.free_mib())
    return free


def with_their_context(count: int) -> list[float]:
    """Before small and large ones are made in a context of their own, then, and without it."""
    cuda = Cuda()
    free = [cuda.free_mib()]
    own = cuda.get("cuCtxCreate_v2", 0, 0)
    for _ in range(count):
        cuda.get("cuMemAlloc_v2", 512)
        cuda.get("cuMemAlloc_v2", 3 * MIB)
    free.append(cuda.free_mib())
    cuda.ok("cuCtxDestroy_v2", own)
    return [*free, cuda.free_mib()]


def in_threads(threads: int, turns: int) -> float:
    """Threads that take and free small ones; nothing is left."""
    cuda = Cuda()
    context = cuda.get("cuCtxGetCurrent")

    def work(seed: int) -> None:
        chance, pointers = random.Random(seed), []
        cuda.ok("cuCtxSetCurrent", context)
        for _ in range(turns):
            if pointers and chance.random() < 0.5:
                cuda.ok("cuMemFree_v2", pointers.pop())
            elif cuda.cuMemAlloc_v2(got := Number(), chance.randint(1, MIB)) == 0:
                pointers.append(int(got))
        for pointer in pointers:
            cuda.ok("cuMemFree_v2", pointer)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return cuda.free_mib()


def while_the_driver_fails(control: list[str], times: int) -> int:
    """Take 4 MiB after each injected failure of the driver's next call; how often it was had."""
    cuda, got = Cuda(), 0
    for _ in range(times):
        subprocess.run(control, check=True)
        got += cuda.cuMemAlloc_v2(Number(), 4 * MIB) == 0
    return got
