"""Waiting for something that happens in a thread."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for at most ``seconds``."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen"
        await asyncio.sleep(0.005)
