"""Whether the event loop turns: how late it comes back to a timer that rings 20 times a second.

Everything shares one loop, the Lease too; what blocks it is seen here before the Lease is lost. A
metric shows it (``metrics``). Runs from a replica's start to its end.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

SECONDS = 0.05


class StallWatch:
    """Rings until ``cleanup``; must be made where an event loop runs."""

    def __init__(self, observe_seconds: Callable[[float], None]) -> None:
        """``observe_seconds``: is told how late each ring was."""
        self._observe_seconds = observe_seconds
        self._task = asyncio.create_task(self._run(), name="stalls")

    async def cleanup(self) -> None:
        """Ring no more."""
        self._task.cancel()

    async def _run(self) -> NoReturn:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + SECONDS
            await asyncio.sleep(SECONDS)
            self._observe_seconds(max(0.0, loop.time() - due))
