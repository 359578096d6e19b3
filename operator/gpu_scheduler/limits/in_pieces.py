"""Long passes over what is known, in pieces: others on the event loop have their turn between."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

PIECE = 20


async def in_pieces(values: Iterable[T]) -> AsyncIterator[T]:
    """Each of them, as they are now; the loop turns after every ``PIECE``."""
    for number, each in enumerate(tuple(values), 1):
        yield each
        if number % PIECE == 0:
            await asyncio.sleep(0)
