"""Long passes over what is known, in pieces: others on the event loop have their turn between."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

PIECE = 20


async def in_pieces(values: Iterable[T]) -> AsyncIterator[T]:
    """Each of them, as they are now; the loop turns after every ``PIECE``."""
    for number, each in enumerate(tuple(values), 1):
        yield each
        if number % PIECE == 0:
            await asyncio.sleep(0)


async def in_parts(values: Iterable[T], size: int) -> AsyncIterator[Sequence[T]]:
    """The same, so many at a time: where a step is so short that ``in_pieces`` would double it."""
    known = tuple(values)
    for begin in range(0, len(known), size):
        yield known[begin : begin + size]
        await asyncio.sleep(0)
