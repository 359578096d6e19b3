"""The time of the history: seconds that never go back, whatever the node's clock does.

While the node runs it goes on as its monotonic clock does, that goes on while it sleeps. Over a
restart of the node only the wall clock can say how long it was; where that was set back, a moment
passes, and where it jumped ahead, no more than what the rings hold.
"""

from collections.abc import Callable
from struct import Struct
from time import time as wall_time
from zlib import crc32

from gpu_scheduler.kube.lease import boot_seconds

_MOST_SECONDS = 8 * 86400.0  # nothing of before is left after a week
_MARK = Struct("<36sddd")
_CHECK = Struct("<I")
MARK_BYTES = _MARK.size + _CHECK.size


class HistoryClock:
    """Begins where a mark says that it was."""

    def __init__(
        self,
        boot_id: str,
        boot: Callable[[], float] = boot_seconds,
        wall: Callable[[], float] = wall_time,
    ) -> None:
        """It stands at the least second until ``resume``.

        Args:
            boot_id: of the kernel, another one after each start of the node.
            boot: seconds since the node started, also while it slept.
            wall: epoch seconds, which may be set to anything.
        """
        self._boot_id = boot_id.encode()[:36].ljust(36, b"\0")
        self._boot = boot
        self._wall = wall
        self._base = 1.0 - boot()
        self.marked = -1.0
        """Where the mark is at which it went on; -1: there was none."""

    def now(self) -> float:
        """Seconds."""
        return self._base + self._boot()

    def mark(self) -> bytes:
        """What ``resume`` needs to go on from here."""
        body = _MARK.pack(self._boot_id, self.now(), self._boot(), self._wall())
        return body + _CHECK.pack(crc32(body))

    def resume(self, mark: bytes) -> bool:
        """Go on from a mark, never back; False: it is none."""
        if len(mark) != MARK_BYTES:
            return False
        body = mark[: _MARK.size]
        if _CHECK.unpack_from(mark, _MARK.size)[0] != crc32(body):
            return False
        boot_id, then, boot, wall = _MARK.unpack(body)
        passed = self._boot() - boot if boot_id == self._boot_id else self._wall() - wall
        now = then + min(max(passed, 0.0), _MOST_SECONDS)
        self._base = max(self._base, now - self._boot())
        self.marked = max(self.marked, then)
        return True
