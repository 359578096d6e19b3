"""Programs that mean no harm, and do with processes and threads what libraries do for them."""

import ctypes
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.native.container import Container

CAP, CONTEXT, PIECE = 1000, 300, 64
BESIDE_ONE = (CAP - CONTEXT) // PIECE * PIECE  # what fits beside one context


@pytest.fixture(params=[CONTEXT, None], ids=["told", "measured"])
def box(container: Callable[..., Container], request: pytest.FixtureRequest) -> Container:
    return container(cap_mib=CAP, context_mib=request.param)


def opened() -> tuple[Any, int]:
    driver: Any = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOW)
    context = ctypes.c_void_p()
    driver.cuInit(0)
    answer = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    return driver, int(answer)


def filled(driver: Any, pieces: int = 64) -> int:
    """MiB that it got."""
    count, bytes_ = 0, ctypes.c_size_t(PIECE << 20)
    while count < pieces and not driver.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), bytes_):
        count += 1
    return count * PIECE


def worker(answers: Any, done: Any) -> None:
    driver, _ = opened()
    answers.put(filled(driver))
    done.wait()


def by_multiprocessing(how: str) -> int:
    """What three children have together."""
    several = multiprocessing.get_context(how)
    answers, done = several.Queue(), several.Event()
    children = [several.Process(target=worker, args=(answers, done)) for _ in range(3)]
    for child in children:
        child.start()
    got = sum(answers.get() for _ in children)
    done.set()
    for child in children:
        child.join()
    return got


@pytest.mark.alone
@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
def test_children_of_multiprocessing_share_the_cap(box: Container, how: str) -> None:
    got = box.call(f"{__name__}:by_multiprocessing", how)
    assert 0 < got <= BESIDE_ONE
    assert box.gpu.peak_mib() <= CAP


def by_a_pool_of_threads() -> int:
    """What twelve threads have that each make a context of their own."""
    driver: Any = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    got = list[int]()

    def make() -> None:
        if not driver.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0):
            got.append(filled(driver))

    threads = [threading.Thread(target=make) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(got) + CONTEXT * len(got)


def once_more_after_exec() -> None:
    opened_driver, _ = opened()
    filled(opened_driver, 4)
    words = f"from {__name__} import *; print(filled(opened()[0]))"
    os.execv(sys.executable, [sys.executable, "-c", words])


@pytest.mark.alone
def test_a_pool_of_threads_keeps_to_the_cap(box: Container) -> None:
    got = box.call(f"{__name__}:by_a_pool_of_threads")
    assert 0 < got <= CAP
    assert box.gpu.peak_mib() <= CAP


@pytest.mark.alone
def test_a_program_has_let_go_after_exec(box: Container) -> None:
    command = [sys.executable, "-c", f"import {__name__} as m; m.once_more_after_exec()"]
    done = box.run(command)
    assert done.stdout == f"{BESIDE_ONE}\n", done.stderr
    assert box.gpu.peak_mib() <= CAP
