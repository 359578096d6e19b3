"""Long passes over what is known, in pieces: others on the event loop have their turn between.

A piece is measured by its time. A turn of a busy loop may take as long as a plan: a pass that gives
way after every few values would take a minute where its own work is a fifth of a second.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
Clock = Callable[[], float]

PIECE_SECONDS = 0.005  # between two turns of the loop, and the work on one value more


async def in_pieces(values: Iterable[T], clock: Clock = time.perf_counter) -> AsyncIterator[T]:
    """Each of them, as they are now; the loop turns where work on them took ``PIECE_SECONDS``."""
    began = clock()
    for each in tuple(values):
        began = await _turn(began, clock)
        yield each


async def in_parts(
    values: Iterable[T], size: int, clock: Clock = time.perf_counter
) -> AsyncIterator[Sequence[T]]:
    """The same, so many at a time: where a step is so short that ``in_pieces`` would double it."""
    known, began = tuple(values), clock()
    for at in range(0, len(known), size):
        began = await _turn(began, clock)
        yield known[at : at + size]


async def _turn(began: float, clock: Clock) -> float:
    """When the piece began that goes on now."""
    if clock() - began < PIECE_SECONDS:
        return began
    await asyncio.sleep(0)
    return clock()
