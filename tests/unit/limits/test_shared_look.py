"""However many ask, one looks."""

import asyncio

import pytest

from gpu_scheduler.limits.shared_look import SharedLook


class Looks:
    """Numbers its looks, each of which takes a turn of the loop."""

    def __init__(self, seconds: float = 2.0) -> None:
        self.now = 100.0
        self.count = 0
        self.broken = False
        self.ask = SharedLook(self._look, seconds, lambda: self.now)

    async def _look(self) -> int:
        self.count += 1
        number = self.count
        await asyncio.sleep(0)
        if self.broken:
            raise ValueError("unheard of")
        return number


async def test_all_who_ask_at_once_share_one_look() -> None:
    looks = Looks()
    assert await asyncio.gather(*(looks.ask() for _ in range(50))) == [1] * 50


async def test_one_is_shared_until_it_is_too_old_counted_from_its_beginning() -> None:
    looks = Looks()
    assert await looks.ask() == 1
    looks.now += 1.9
    assert await looks.ask() == 1
    looks.now += 0.1
    assert await looks.ask() == 2


async def test_nobody_looks_where_nobody_asks() -> None:
    looks = Looks()
    await looks.ask()
    looks.now += 1000.0
    for _ in range(5):
        await asyncio.sleep(0)
    assert looks.count == 1


async def test_one_who_goes_away_takes_it_from_nobody() -> None:
    looks = Looks()
    asking = [asyncio.create_task(looks.ask()) for _ in range(2)]
    await asyncio.sleep(0)
    asking[0].cancel()
    gone, there = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert there == 1


async def test_after_one_that_failed_the_next_who_asks_looks_anew() -> None:
    looks = Looks()
    looks.broken = True
    with pytest.raises(ValueError, match="unheard of"):
        await looks.ask()
    looks.broken = False
    assert await looks.ask() == 2
