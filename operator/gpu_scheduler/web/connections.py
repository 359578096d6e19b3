"""Who holds which connections to a port, and which one gives way to a newcomer.

Nobody can keep others out by holding connections: when there is no room, the one who holds most
loses the oldest on which nothing is being answered. Pure bookkeeping, for ``bounded``.
"""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class HeldConnection:
    """A connection; ``busy`` while a request on it is being answered."""

    source: str  # address, without the port
    busy: bool = False


class Connections:
    """Those that are open."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """How many there may be, and how many of one source."""
        self._most = most
        self._most_of_one = most_of_one
        self._by_source: dict[str, dict[HeldConnection, None]] = {}  # the oldest first
        self._count = 0

    def __len__(self) -> int:
        """How many are open."""
        return self._count

    def add(self, held: HeldConnection) -> None:
        """A connection was opened."""
        self._by_source.setdefault(held.source, {})[held] = None
        self._count += 1

    def remove(self, held: HeldConnection) -> None:
        """A connection was closed; again: nothing happens."""
        mine = self._by_source.get(held.source, {})
        if held in mine:
            del mine[held]
            self._count -= 1
            if not mine:
                del self._by_source[held.source]

    def in_the_way(self, source: str) -> HeldConnection | None:
        """What must be closed before one more of this source may be opened; None: nothing.

        Raises:
            FullError: the newcomer has to go.
        """
        mine = self._by_source.get(source, {})
        if self._count < self._most and len(mine) < self._most_of_one:
            return None
        most = mine
        if len(mine) < self._most_of_one:
            most = max(self._by_source.values(), key=len)
        idle = next((held for held in most if not held.busy), None)
        if idle is not None:
            return idle
        if len(most) <= len(mine) + 1:  # it would be the newcomer's turn next
            raise FullError
        return next(iter(most))


class FullError(Exception):
    """There is no room for one more."""
