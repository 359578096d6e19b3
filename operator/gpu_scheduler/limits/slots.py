"""So many requests at once, and of one party only so many: its slow ones hold nobody else's up.

The parties take turns; which of its requests is first, a party's own order says.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from gpu_scheduler.limits.turns import Turns


class Slots:
    """Slots for what is in flight."""

    def __init__(self, most: Callable[[], int], most_of_one: int) -> None:
        """``most``: how many there may be just now; ``most_of_one``: of one party."""
        self._most = most
        self._used = 0
        self._turns: Turns[str, asyncio.Future[None]] = Turns(most_of_one)

    @contextlib.asynccontextmanager
    async def of(self, party: str) -> AsyncIterator[None]:
        """One of them, once it is the party's turn."""
        turn = asyncio.get_running_loop().create_future()
        self._turns.add(party, turn)
        self._hand_out()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._used -= 1
                self._turns.done(party)
                self._hand_out()

    def _hand_out(self) -> None:
        while self._used < self._most() and (taken := self._turns.take()):
            party, turn = taken
            if turn.done():  # nobody waits for it any more
                self._turns.done(party)
                continue
            self._used += 1
            turn.set_result(None)
