"""A server at which a leader is killed in the middle of a write, which is taken or not."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.unit.generated.server import Server


class Deadly(Server):
    """Whoever sends a write that ``strikes`` names gets no answer any more, once it is armed.

    ``takes_it``: whether the write is taken all the same.
    """

    def __init__(
        self,
        strikes: Callable[[str, str, bytes], bool],
        fault: Callable[[str, int], str] = lambda path, tries: "",
    ) -> None:
        super().__init__(fault)
        self._strikes = strikes
        self.armed, self.takes_it = False, False
        self.struck = asyncio.Event()

    async def request(
        self, method: str, path: str, *, params: Any = None, body: bytes | None = None, **more: Any
    ) -> bytes:
        if self.armed and self._strikes(method, path, body or b""):
            self.armed = False
            if self.takes_it:
                await super().request(method, path, params=params, body=body, **more)
            self.struck.set()
            await asyncio.Event().wait()
        return await super().request(method, path, params=params, body=body, **more)
