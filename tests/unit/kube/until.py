"""Waiting for what a test expects, without polling and without sleeping."""

import asyncio
from collections.abc import Callable


class Changes:
    """Somebody calls ``happened``; a test awaits the condition that it makes true."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    def happened(self) -> None:
        still = []
        for condition, future in self._waiting:
            if future.done():
                continue
            if condition():
                future.set_result(None)
            else:
                still.append((condition, future))
        self._waiting = still

    async def until(self, condition: Callable[[], bool], *, seconds: float = 60.0) -> None:
        """Return when ``condition`` holds; fail the test if that takes ``seconds``."""
        if condition():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, future))
        await asyncio.wait_for(future, seconds)
