"""How far projects were below their fair shares, over windows of a quarter of an hour."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.request import ProjectName

WINDOW_SECONDS = 900.0


@dataclass(slots=True)
class _Window:
    """Of one project, in milli-GPU times seconds; ``asked``: seconds in which it waited."""

    share: float = 0.0
    held: float = 0.0
    short: float = 0.0
    asked: float = 0.0


class ShareWindows:
    """All windows of all projects, from a moment on."""

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._windows: dict[tuple[ProjectName, int], _Window] = {}

    def add(
        self,
        begin: float,
        end: float,
        shares: Mapping[ProjectName, int],
        held: Mapping[ProjectName, int],
        short: Mapping[ProjectName, int],
    ) -> None:
        """Nothing changed for a while; ``short``: by how much, of projects that wait."""
        while begin < end:
            number = int((begin - self._begin) // WINDOW_SECONDS)
            until = min(end, self._begin + (number + 1) * WINDOW_SECONDS)
            seconds, begin = until - begin, until
            for name, share in shares.items():
                window = self._windows.setdefault((name, number), _Window())
                window.share += share * seconds
                window.held += held.get(name, 0) * seconds
                if name in short:
                    window.short += short[name] * seconds
                    window.asked += seconds

    def below(self) -> Iterator[float]:
        """What was held less than the share, in percent of it; where it waited for half of it."""
        for window in self._asking(WINDOW_SECONDS / 2):
            yield 100 * max(0.0, 1 - window.held / window.share)

    def short(self) -> Iterator[float]:
        """What was short, in percent of the share; where it waited at all."""
        for window in self._asking(0.0):
            yield 100 * window.short / window.share

    def _asking(self, seconds: float) -> Iterator[_Window]:
        for window in self._windows.values():
            if window.share and window.asked and window.asked >= seconds:
                yield window
