"""Which containers are above their memory cap: a pure decision over samples.

A container is over when it holds more than its cap and a tolerance in ``samples`` looks in a row,
and well again after as many looks below. A look at which the driver did not know the memory changes
nothing. The tolerance is per process, since each has a context that the ledger learns of only after
the first sample; it does not grow without end.
"""

from collections.abc import Iterable, Sized
from dataclasses import dataclass

from gpu_scheduler.agent.pods import GpuContainer
from gpu_scheduler.agent.usage import ContainerUse, Use

MOST_CONTEXTS = 8

Key = tuple[str, int]  # pod uid, container


@dataclass(frozen=True, slots=True)
class OverCapContainer:
    """A container that is above its cap."""

    container: GpuContainer
    since: str  # wall clock of the first of the samples
    message: str
    pids: tuple[int, ...]


@dataclass(slots=True)
class _State:
    above: int = 0
    below: int = 0
    since: str = ""
    message: str = ""
    over: bool = False


class Watchdog:
    """Counts samples per container."""

    def __init__(self, *, tolerance_mib: int, samples: int = 3) -> None:
        self._tolerance_mib = tolerance_mib
        self._samples = samples
        self._states: dict[Key, _State] = {}
        self.violations = 0
        """Times that a container went over."""

    def update(self, uses: Iterable[ContainerUse], now: str) -> dict[Key, OverCapContainer]:
        """Take a sample in: the containers that are over now.

        Args:
            uses: All GPU containers of the node.
            now: Wall clock, as it will be reported.
        """
        over: dict[Key, OverCapContainer] = {}
        seen: set[Key] = set()
        for use in uses:
            key = use.key
            seen.add(key)
            state = self._states.setdefault(key, _State())
            excess = [each for each in use.uses if self.is_above(each)]
            if excess:
                self._above(state, use, excess, now)
            elif all(each.used_mib is not None for each in use.uses):
                self._below(state)
            if state.over:
                pids = tuple(p.pid for each in excess for p in each.processes)
                over[key] = OverCapContainer(use.container, state.since, state.message, pids)
        for key in self._states.keys() - seen:
            del self._states[key]
        return over

    def is_above(self, use: Use) -> bool:
        """Whether this look shows more than cap and tolerance."""
        used = use.used_mib
        return used is not None and used > use.cap_mib + self._tolerance(use.processes)

    def is_too_much(self, use: ContainerUse, mib: int) -> bool:
        """Whether so much cannot be what contexts and libraries of the container take."""
        return mib > sum(self._tolerance(each.processes) for each in use.uses)

    def _tolerance(self, processes: Sized) -> int:
        return self._tolerance_mib * max(1, min(len(processes), MOST_CONTEXTS))

    def _above(self, state: _State, use: ContainerUse, excess: list[Use], now: str) -> None:
        state.below = 0
        state.above += 1
        if state.above == 1 and not state.over:
            state.since = now
        if state.above >= self._samples and not state.over:
            state.over = True
            self.violations += 1
            # Kept as it was found: figures that move with every sample would be news each time.
            state.message = "; ".join(
                f"container {use.container.own.name} holds {each.used_mib} MiB of {each.uuid}, its "
                f"cap is {each.cap_mib} MiB"
                for each in excess
            )

    def _below(self, state: _State) -> None:
        state.above = 0
        state.below += 1
        if state.below >= self._samples:
            state.over = False
