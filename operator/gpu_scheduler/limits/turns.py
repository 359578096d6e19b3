"""Items of several parties, taken by turns: nobody's heap comes before another's first item.

One after the other of each party, whatever it has waiting. A party may have so many items under way
and no more until it says that one is ``done``. Used for logs by namespace and for requests by
source address.
"""

from collections import Counter, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

Party = TypeVar("Party", bound=Hashable)
Item = TypeVar("Item")


class Turns(Generic[Party, Item]):
    """Who is next, and with what. Every operation but ``take`` past busy parties takes O(1)."""

    def __init__(self, most_under_way: int | None = None) -> None:
        """``most_under_way``: of one party at a time; None: no limit, and no ``done`` is needed."""
        self._most = most_under_way
        self._waiting: dict[Party, deque[Item]] = {}  # in the order of turns; none is empty
        self._under_way: Counter[Party] = Counter()

    def __len__(self) -> int:
        """Items that wait."""
        return sum(map(len, self._waiting.values()))

    def __bool__(self) -> bool:
        """Whether any item waits."""
        return bool(self._waiting)

    def add(self, party: Party, item: Item) -> None:
        """Put an item behind the others of its party."""
        self._waiting.setdefault(party, deque()).append(item)

    def take(self) -> tuple[Party, Item] | None:
        """The next item, and whose it is; None while none may be begun."""
        party = next((p for p in self._waiting if self._may(p)), None)
        if party is None:
            return None
        items = self._waiting.pop(party)
        item = items.popleft()
        if items:
            self._waiting[party] = items  # the last in turn from now on
        if self._most is not None:
            self._under_way[party] += 1
        return party, item

    def done(self, party: Party) -> None:
        """An item of this party that was taken is over."""
        self._under_way[party] -= 1
        if self._under_way[party] <= 0:
            del self._under_way[party]

    def _may(self, party: Party) -> bool:
        return self._most is None or self._under_way[party] < self._most
