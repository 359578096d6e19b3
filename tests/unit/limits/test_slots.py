"""Writes of one namespace that get no answer hold up no others."""

import asyncio

from gpu_scheduler.limits.slots import Slots
from gpu_scheduler.runtime.common.queue import WorkQueue


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_of_one_namespace_no_more_are_in_flight_than_it_may_have() -> None:
    slots, begun, answered = Slots(lambda: 4, 2), list[str](), asyncio.Event()

    async def write(namespace: str) -> None:
        async with slots.of(namespace):
            begun.append(namespace)
            if namespace == "slow":
                await answered.wait()

    tasks = [asyncio.create_task(write(each)) for each in ["slow"] * 5 + ["other"] * 5]
    await settled()
    assert sorted(begun) == ["other"] * 5 + ["slow"] * 2
    answered.set()
    await asyncio.gather(*tasks)
    assert begun.count("slow") == 5


async def test_whoever_waits_no_longer_takes_no_slot() -> None:
    slots = Slots(lambda: 1, 1)

    async def write() -> None:
        async with slots.of("team"):
            await asyncio.sleep(3600)

    one, other = asyncio.create_task(write()), asyncio.create_task(write())
    await settled()
    for task in (other, one):
        task.cancel()
    await asyncio.wait({one, other})
    async with asyncio.timeout(5), slots.of("team"):
        pass


async def test_a_namespace_whose_jobs_take_long_leaves_workers_to_others() -> None:
    queue: WorkQueue[str] = WorkQueue(most_of_one=2)
    done, answered = list[str](), asyncio.Event()

    async def handle(key: str) -> None:
        if key.startswith("slow/"):
            await answered.wait()
        done.append(key)

    workers = [asyncio.create_task(queue.work(handle)) for _ in range(3)]
    for key in [*(f"slow/{i}" for i in range(9)), *(f"other/{i}" for i in range(3))]:
        queue.add(key)
    await settled()
    await settled()
    assert done == ["other/0", "other/1", "other/2"]
    answered.set()
    await queue.emptied(5)
    assert len(done) == 12
    for worker in workers:
        worker.cancel()
    await asyncio.wait(workers)


async def test_namespaces_take_turns() -> None:
    queue: WorkQueue[str] = WorkQueue()
    done = list[str]()

    async def handle(key: str) -> None:
        done.append(key)

    for key in ("a/1", "a/2", "a/3", "b/1"):
        queue.add(key)
    worker = asyncio.create_task(queue.work(handle))
    await queue.emptied(5)
    assert done == ["a/1", "b/1", "a/2", "a/3"]
    worker.cancel()
    await asyncio.wait({worker})
