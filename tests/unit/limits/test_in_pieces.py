"""A long pass gives way by the time that it took, not by how many values it has seen."""

import asyncio

from gpu_scheduler.limits.in_pieces import PIECE_SECONDS, in_pieces


async def turns_of(count: int, seconds_each: float) -> tuple[list[int], int]:
    """What came, and how often the loop turned meanwhile; work on each takes so long."""
    now, turns, over = [0.0], 0, False

    async def others() -> None:
        nonlocal turns
        while not over:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    came = []
    async for each in in_pieces(range(count), lambda: now[0]):
        came.append(each)
        now[0] += seconds_each
    over = True
    await beside
    return came, turns


async def test_ten_thousand_small_ones_cost_few_turns() -> None:
    came, turns = await turns_of(10_000, PIECE_SECONDS / 1000)
    assert came == list(range(10_000))
    assert 9 <= turns <= 11


async def test_none_that_is_large_keeps_others_waiting_for_a_second_one() -> None:
    came, turns = await turns_of(20, 2 * PIECE_SECONDS)
    assert came == list(range(20))
    assert turns >= 19
