"""When those who read regularly will read next, as Prometheus does. Pure.

One who reads no more costs one wrong guess, and one who reads whenever it likes one each time.
"""

from collections import OrderedDict

LEAST_SECONDS = 2.0  # between two of one reader's: whoever reads more often meets what is kept
MOST_SECONDS = 150.0
READERS = 16  # that are remembered


class Foreseen:
    """What is known of readers."""

    def __init__(self) -> None:
        """Nobody has read yet."""
        self._last: OrderedDict[str, float] = OrderedDict()  # the one that read last at the end
        self._due: dict[str, float] = {}

    def read(self, reader: str, now: float) -> None:
        """A reader has read (``now``: monotonic seconds)."""
        last = self._last.pop(reader, None)
        self._last[reader] = now
        self._due.pop(reader, None)
        if last is not None and LEAST_SECONDS <= now - last <= MOST_SECONDS:
            self._due[reader] = now + (now - last)
        if len(self._last) > READERS:
            forgotten, _ = self._last.popitem(last=False)
            self._due.pop(forgotten, None)

    def next(self, now: float) -> float | None:
        """When the first of those will read that are still expected; None: nobody is."""
        self._due = {reader: due for reader, due in self._due.items() if due > now}
        return min(self._due.values(), default=None)
