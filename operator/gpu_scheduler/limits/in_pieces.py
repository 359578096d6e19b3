"""Long passes over what is known, in pieces: others on the event loop have their turn between.

A piece is measured by its time. A turn of a busy loop may take as long as a plan: a pass that gives
way after every few values would take a minute where its own work is a fifth of a second.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

PIECE_SECONDS = 0.005  # between two turns of the loop, and the work on one value more


async def in_pieces(
    values: Iterable[T], clock: Callable[[], float] = time.perf_counter
) -> AsyncIterator[T]:
    """Each of them, as they are now; the loop turns where work on them took ``PIECE_SECONDS``."""
    began = clock()
    for each in tuple(values):
        if clock() - began >= PIECE_SECONDS:
            await asyncio.sleep(0)
            began = clock()
        yield each
