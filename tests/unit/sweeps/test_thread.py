"""The thread for long work: in order, beside the loop, and never in the way of an end."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from gpu_scheduler.sweeps.thread import Thread

HANGS = """
import asyncio, threading, uvloop
from gpu_scheduler.sweeps.thread import Thread

async def main():
    thread = Thread("hangs")
    try:
        async with asyncio.timeout(0.1):
            await thread(threading.Event().wait)
    except TimeoutError:
        thread.close()
        print("gave up")

uvloop.run(main())
"""


async def test_work_runs_in_the_order_in_which_it_came_and_in_one_other_thread() -> None:
    begun: list[int] = []
    thread = Thread("test", lambda: begun.append(threading.get_ident()))

    def work(number: int) -> tuple[int, int]:
        return number, threading.get_ident()

    answers = await asyncio.gather(*(thread(work, number) for number in range(5)))
    assert [number for number, _ in answers] == list(range(5))
    assert {ident for _, ident in answers} == set(begun) != {threading.get_ident()}
    thread.close()


async def test_what_work_raises_is_the_answer_and_the_next_piece_is_done() -> None:
    thread = Thread("test")
    with pytest.raises(ZeroDivisionError):
        await thread(lambda: 1 / 0)
    assert await thread(int, "7") == 7
    thread.close()


async def test_after_a_close_nothing_begins() -> None:
    thread, hold, entered, done = Thread("test"), threading.Event(), threading.Event(), list[int]()

    def held() -> None:
        entered.set()
        hold.wait(60)

    async with asyncio.timeout(120):
        first = asyncio.create_task(thread(held))
        second = asyncio.create_task(thread(done.append, 1))
        await asyncio.to_thread(entered.wait, 60)
        thread.close()
        hold.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await second
    assert not done


def test_a_process_ends_while_its_work_hangs() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGS],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.stdout == "gave up\n"
