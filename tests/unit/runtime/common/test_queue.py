import asyncio
import itertools
from collections.abc import Callable

import pytest
from tests.unit.runtime.virtual_loop import Running, clock, virtual

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.unexpected import counts
from gpu_scheduler.runtime.common.queue import WorkQueue


class Worker:
    """Notes when it gets which key; a key in ``holds`` is kept until its event is set."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []
        self.active: list[str] = []
        self.holds: dict[str, asyncio.Event] = {}
        self.start = clock()

    async def __call__(self, key: str) -> None:
        assert key not in self.active, "two workers have the same key"
        self.active.append(key)
        self.seen.append((key, round(clock() - self.start, 3)))
        if key in self.holds:
            await self.holds[key].wait()
        self.active.remove(key)

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.seen]


async def turns() -> None:
    await asyncio.sleep(0.001)


@virtual
async def test_keys_are_worked_on_in_their_order_and_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    for key in ("b", "a", "b", "c", "a"):
        queue.add(key)
    assert len(queue) == 3
    async with Running(queue.work(worker)):
        await turns()
    assert worker.keys == ["b", "a", "c"]
    assert len(queue) == 0


@virtual
async def test_others_have_their_turn_after_each_key_that_waits_for_nothing() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker, lengths = Worker(), list[int]()

    async def look() -> None:
        for _ in range(200):
            lengths.append(len(worker.seen))
            await asyncio.sleep(0)

    for n in range(50):
        queue.add(str(n))
    async with Running(look()), Running(queue.work(worker)):
        await turns()
    assert max(b - a for a, b in itertools.pairwise(lengths)) == 1
    assert lengths[-1] == 50


@virtual
async def test_a_key_is_never_with_two_workers_and_comes_back_when_added_meanwhile() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    worker.holds["a"] = asyncio.Event()
    async with Running(queue.work(worker), queue.work(worker)):
        queue.add("a")
        await turns()
        queue.add("a")
        queue.add("a")
        queue.add("b")
        await turns()
        assert worker.keys == ["a", "b"]
        worker.holds["a"].set()
        await turns()
    assert worker.keys == ["a", "b", "a"]


@virtual
async def test_workers_share_the_keys() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    worker.holds = {key: asyncio.Event() for key in "abc"}
    async with Running(*(queue.work(worker) for _ in range(2))):
        await turns()
        for key in "abc":
            queue.add(key)
        await turns()
        assert worker.active == ["a", "b"]
        worker.holds["a"].set()
        await turns()
        assert worker.active == ["b", "c"]
        for event in worker.holds.values():
            event.set()
        await turns()


@virtual
async def test_the_delay_grows_with_failures_and_starts_anew_after_a_success() -> None:
    queue: WorkQueue[str] = WorkQueue(base_seconds=1.0, max_seconds=5.0)
    assert [queue.retry("a") for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert queue.retry("b") == 1.0
    queue.succeeded("a")
    assert queue.retry("a") == 1.0


@virtual
async def test_a_delay_never_overflows() -> None:
    queue: WorkQueue[str] = WorkQueue(base_seconds=1.0, max_seconds=60.0)
    assert [queue.retry("a") for _ in range(2000)][-1] == 60.0


@virtual
async def test_a_key_that_failed_comes_back_after_its_delay() -> None:
    queue: WorkQueue[str] = WorkQueue(base_seconds=1.0)
    worker = Worker()

    async def fail_twice(key: str) -> None:
        await worker(key)
        if len(worker.seen) < 3:
            queue.retry(key)
        else:
            queue.succeeded(key)

    async with Running(queue.work(fail_twice)):
        queue.add("a")
        await asyncio.sleep(60)
    assert worker.seen == [("a", 0.0), ("a", 1.0), ("a", 3.0)]


@virtual
async def test_a_timer_that_came_too_early_is_not_asked_for_without_end() -> None:
    queue: WorkQueue[str] = WorkQueue()
    due, tries = clock() + 1.0, 0

    async def too_early(key: str) -> None:
        nonlocal tries
        tries += 1
        if tries < 100 and due + 1e-10 > clock():
            queue.add_after(key, due + 1e-10 - clock())

    queue.add_after("a", 1.0)
    async with Running(queue.work(too_early)):
        await asyncio.sleep(2)
    assert tries == 2


@virtual
async def test_of_two_delays_the_shorter_counts() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    async with Running(queue.work(worker)):
        queue.add_after("a", 10.0)
        queue.add_after("a", 2.0)
        queue.add_after("a", 5.0)
        await asyncio.sleep(60)
    assert worker.seen == [("a", 2.0)]


@virtual
async def test_of_two_delays_that_are_none_or_tiny_one_look_comes() -> None:
    """uvloop answers for what is due at once with a handle that cannot say when."""
    for first, second in itertools.product((0.0, 0.0001, 5.0), repeat=2):
        queue: WorkQueue[str] = WorkQueue()
        worker = Worker()
        async with Running(queue.work(worker)):
            queue.add_after("a", first)
            queue.add_after("a", second)
            await asyncio.sleep(60)
        assert len(worker.seen) == 1
        assert worker.seen[0][1] <= min(first, second) + 0.001


async def test_two_delays_of_nothing_in_one_turn_are_one_look_on_the_operators_own_loop() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    async with Running(queue.work(worker)):
        queue.add_after("a", 0.0)
        queue.add_after("a", 0.0)
        for _ in range(5):
            await asyncio.sleep(0)
    assert worker.keys == ["a"]


@virtual
async def test_adding_a_key_now_cancels_its_delay() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    async with Running(queue.work(worker)):
        queue.add_after("a", 10.0)
        queue.add("a")
        await asyncio.sleep(60)
    assert worker.seen == [("a", 0.0)]


@virtual
async def test_whatever_a_handle_raises_its_worker_goes_on_and_the_key_is_not_held() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker, before = Worker(), counts["queue"]

    async def broken(key: str) -> None:
        await worker(key)
        if key == "bad":
            try:
                raise ValueError(key)
            except ValueError:
                raise AttributeError("in its own except") from None

    async with Running(queue.work(broken)):
        for key in ("bad", "good", "bad"):
            queue.add(key)
            await turns()
    assert worker.keys == ["bad", "good", "bad"]
    assert counts["queue"] == before + 2


@virtual
async def test_a_worker_ends_when_the_fence_closes() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def fenced(key: str) -> None:
        raise errors.NotLeader(message="over")

    queue.add("a")
    with pytest.raises(errors.NotLeader):
        await queue.work(fenced)


@virtual
async def test_it_is_emptied_once_the_last_key_has_been_worked_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    done: list[str] = []

    async def handle(key: str) -> None:
        await asyncio.sleep(1)
        done.append(key)

    for key in "abc":
        queue.add(key)
    async with Running(queue.work(handle)):
        await queue.emptied(60)
        assert done == ["a", "b", "c"]
        queue.add("d")
        await queue.emptied(0.5)
        assert done == ["a", "b", "c"], "no longer than was asked"


async def failing(queue: WorkQueue[str], more: Callable[[int], None]) -> list[float]:
    """When a key that always fails is worked on in two minutes; ``more``: done every 0.25 s."""
    worker = Worker()

    async def fail(key: str) -> None:
        await worker(key)
        queue.retry(key)

    async with Running(queue.work(fail)):
        queue.add("a")
        for count in range(480):
            await asyncio.sleep(0.25)
            more(count)
    return [at for _, at in worker.seen]


@virtual
async def test_who_asks_without_news_does_not_go_round_the_back_off() -> None:
    alone = await failing(WorkQueue(base_seconds=1.0), lambda count: None)
    for ask in (
        lambda queue: queue.ask("a"),
        lambda queue: queue.add_after("a", 0.0),
        lambda queue: queue.add_after("a", 0.1),
    ):
        queue: WorkQueue[str] = WorkQueue(base_seconds=1.0)
        assert await failing(queue, lambda count, q=queue, a=ask: a(q)) == alone


@virtual
async def test_news_of_a_key_that_failed_are_looked_at_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(base_seconds=50.0)
    seen = await failing(queue, lambda count: queue.add("a") if count == 4 else None)
    assert seen == [0.0, 1.25, 61.25]


@virtual
async def test_who_asks_while_a_key_is_worked_on_has_it_looked_at_again_unless_it_fails() -> None:
    for fails, keys in ((False, ["a", "a"]), (True, ["a"])):
        queue: WorkQueue[str] = WorkQueue(base_seconds=50.0)
        worker = Worker()

        async def work(
            key: str, queue: WorkQueue[str] = queue, worker: Worker = worker, fails: bool = fails
        ) -> None:
            await worker(key)
            if len(worker.seen) == 1:
                queue.ask(key)
                queue.add_after(key, 0.0)
                await turns()
                if fails:
                    queue.retry(key)

        queue.add("a")
        async with Running(queue.work(work)):
            await asyncio.sleep(10)
        assert worker.keys == keys


@virtual
async def test_a_key_that_was_asked_for_later_and_then_failed_comes_back_when_it_failed() -> None:
    queue: WorkQueue[str] = WorkQueue(base_seconds=50.0)
    worker = Worker()

    async def work(key: str) -> None:
        await worker(key)
        if len(worker.seen) == 1:
            queue.add_after(key, 5.0)
            queue.retry(key)
        else:
            queue.succeeded(key)

    queue.add("a")
    async with Running(queue.work(work)):
        await asyncio.sleep(100)
    assert worker.seen == [("a", 0.0), ("a", 50.0)]


@virtual
async def test_a_key_that_failed_and_has_no_time_of_its_own_can_be_asked_for() -> None:
    queue: WorkQueue[str] = WorkQueue(base_seconds=1.0)
    worker = Worker()

    async def work(key: str) -> None:
        await worker(key)
        if len(worker.seen) == 1:
            queue.retry(key)  # the second time it ends without a word

    queue.add("a")
    async with Running(queue.work(work)):
        await asyncio.sleep(10)
        queue.ask("a")
        await turns()
    assert worker.seen == [("a", 0.0), ("a", 1.0), ("a", 10.0)]
