"""Exact assignment of several device requests of one pod to the devices of one node.

A depth-first search in best-fit order: largest request first, devices that look alike are tried
once, and states proven hopeless are remembered. It finds an assignment whenever one exists, as
long as it needs no more than ``MAX_STEPS`` steps; past that the answer is "does not fit". A
budget over many nodes keeps a nasty shape from stopping the planner.
Several requests may share a device, the devices of one request differ. Called by ``devices``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpu_scheduler.core.request import DeviceRequest
from gpu_scheduler.core.units import DEVICE_MILLI, cap_mib, milli_for_mib

MAX_STEPS = 5_000  # of one search; tight fills of five devices by twenty containers need 3,000
FEW_STEPS = 200  # of one search once the budget is spent

Assignment = tuple[tuple[int, int], ...]  # (index of the request, index of the slot)


@dataclass(slots=True)
class Budget:
    """Steps that the searches for one shape may take together in one cycle."""

    steps: int = 50_000


class Slot(NamedTuple):
    """What is free on one device."""

    free_milli: int
    free_mib: int
    usable_mib: int


def share(request: DeviceRequest, usable_mib: int) -> tuple[int, int]:
    """Milli-GPU and MiB that a request takes on a device with ``usable_mib``.

    The milli are above 1,000, more than any device has, when a request in MiB is larger than the
    device.
    """
    if not request.mib:
        return request.milli, cap_mib(request.milli, usable_mib)
    if request.mib > usable_mib:
        return DEVICE_MILLI + 1, request.mib
    return milli_for_mib(request.mib, usable_mib), request.mib


def assign(
    requests: Sequence[DeviceRequest], slots: Sequence[Slot], budget: Budget | None = None
) -> Assignment | None:
    """A slot for every device asked for, or None when there is no such assignment."""
    budget = budget or Budget()
    search = _Search(requests, slots, min(MAX_STEPS, max(FEW_STEPS, budget.steps)))
    found = search.run()
    budget.steps -= search.steps
    return found


class _Search:
    def __init__(self, requests: Sequence[DeviceRequest], slots: Sequence[Slot], most: int) -> None:
        self._most = most
        self._requests = requests
        self._free = list(slots)
        self._order = sorted(
            range(len(requests)), key=lambda i: (-requests[i].milli, -requests[i].mib, i)
        )
        self._chosen: list[tuple[int, int]] = []
        self._hopeless: set[tuple[int, tuple[Slot, ...]]] = set()
        self.steps = 0

    def run(self) -> Assignment | None:
        if not self._place(0):
            return None
        return tuple(sorted(self._chosen))

    def _place(self, depth: int) -> bool:
        """Place the requests from ``depth`` on."""
        if depth == len(self._order):
            return True
        state = (depth, tuple(sorted(self._free)))
        if state in self._hopeless:
            return False
        number = self._order[depth]
        fitting = [
            (after, position)
            for position in range(len(self._free))
            if (after := self._after(self._requests[number], self._free[position])) is not None
        ]
        fitting.sort(key=lambda f: (f[0].free_milli, f[0].usable_mib, f[0].free_mib, f[1]))
        if self._combine(depth, number, fitting, 0, self._requests[number].count):
            return True
        self._hopeless.add(state)
        return False

    def _combine(
        self, depth: int, number: int, fitting: list[tuple[Slot, int]], start: int, missing: int
    ) -> bool:
        """Choose ``missing`` more devices for one request, then go on with the next request."""
        if missing == 0:
            return self._place(depth + 1)
        tried: Slot | None = None
        for i in range(start, len(fitting) - missing + 1):
            after, position = fitting[i]
            if after == tried:
                continue  # a device in the same state led nowhere
            tried = after
            self.steps += 1
            if self.steps > self._most:
                return False
            before = self._free[position]
            self._free[position] = after
            self._chosen.append((number, position))
            if self._combine(depth, number, fitting, i + 1, missing - 1):
                return True
            self._chosen.pop()
            self._free[position] = before
        return False

    @staticmethod
    def _after(request: DeviceRequest, slot: Slot) -> Slot | None:
        milli, mib = share(request, slot.usable_mib)
        if milli > slot.free_milli or mib > slot.free_mib:
            return None
        return Slot(slot.free_milli - milli, slot.free_mib - mib, slot.usable_mib)
