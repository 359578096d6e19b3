"""The share of time that each container really had of its GPUs: measured, not enforced.

NVML says for each process in which share of its last sample period, 1/6 s to 1 s long, a kernel of
it ran. The sampler asks every ``SLOW_SECONDS``, so a figure here is a mean over about thirty such
looks. It is told in whole steps, for the first time after a minute and then at the end of each
window, and only where it has really changed: at most one write of the node in a window, none while
everybody works as before. Fed with every look; runs in the sampler's thread.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_scheduler.agent.sampler import SLOW_SECONDS
from gpu_scheduler.agent.usage import ContainerUse
from gpu_scheduler.agent.watchdog import Key

FIRST_SECONDS = 60.0
WINDOW_SECONDS = 300.0  # one for all containers of the node
STEP_PERCENT = 10
LEAST_CHANGE_PERCENT = 7.5  # from what was reported
LEAST_LOOKS = 5  # that the driver answered; of fewer nothing is told


@dataclass(slots=True)
class _BusySums:
    container_id: str
    since: float
    total: float = 0.0  # of the window, in looks
    looks: int = 0
    reported: int | None = None

    def add(self, busy_ratio: float | None) -> None:
        if busy_ratio is not None:
            self.total += busy_ratio
            self.looks += 1

    def tell(self) -> None:
        if self.looks < LEAST_LOOKS:
            self.reported = None  # the driver does not know, or hardly
            return
        percent = 100 * self.total / self.looks
        if self.reported is None or abs(percent - self.reported) > LEAST_CHANGE_PERCENT:
            self.reported = round(percent / STEP_PERCENT) * STEP_PERCENT


class ComputeShares:
    """Means per container."""

    def __init__(self) -> None:
        """Start empty."""
        self._shares: dict[Key, _BusySums] = {}
        self._looked_at = self._window = float("-inf")

    def update(self, uses: Iterable[ContainerUse], now: float) -> None:
        """Take a look in, unless the driver has not been asked again since the last one.

        Args:
            uses: All GPU containers of the node.
            now: Monotonic seconds.
        """
        if now - self._looked_at < SLOW_SECONDS:
            return
        self._looked_at = now
        seen: set[Key] = set()
        for use in uses:
            key = use.key
            seen.add(key)
            share = self._shares.get(key)
            if share is None or share.container_id not in ("", use.container.own.id):
                share = self._shares[key] = _BusySums(use.container.own.id, now)
            share.container_id = use.container.own.id
            share.add(use.busy_ratio)
            if share.reported is None and now - share.since >= FIRST_SECONDS:
                share.tell()
        for key in self._shares.keys() - seen:
            del self._shares[key]
        if now - self._window >= WINDOW_SECONDS:
            self._end_window(now)

    def percent(self) -> dict[Key, int]:
        """What is reported now, 0 to 100; nothing where it is not known."""
        known = ((key, share.reported) for key, share in self._shares.items())
        return {key: percent for key, percent in known if percent is not None}

    def _end_window(self, now: float) -> None:
        self._window = now
        for share in self._shares.values():
            if now - share.since >= FIRST_SECONDS:
                share.tell()
                share.total = 0.0
                share.looks = 0
