"""Exact assignment of several device requests of one pod to the devices of one node.

A depth-first search in best-fit order: largest request first, devices that look alike are tried
once, and states proven hopeless are remembered. It finds an assignment whenever one exists, as
long as it needs no more than ``MAX_STEPS`` steps; past that the answer is "does not fit". A
budget over many nodes keeps a nasty pod shape from stopping the planner.
Several requests may share a device, the devices of one request differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpu_scheduler.core.model.request import DeviceRequest
from gpu_scheduler.core.model.units import DEVICE_MILLI, cap_mib, milli_for_mib

MAX_STEPS = 5_000  # of one search; tight fills of five devices by twenty containers need 3,000
FEW_STEPS = 200  # of one search once the budget is spent

SlotChoice = tuple[tuple[int, int], ...]  # (index of the request, index of the slot)


@dataclass(slots=True)
class SearchBudget:
    """Steps that the searches for one pod shape may take together in one cycle."""

    steps: int = 50_000


class Slot(NamedTuple):
    """What is free on one device; ``free_milli``: as many as may fit in fractions."""

    free_milli: int
    free_mib: int
    usable_mib: int


def share(request: DeviceRequest, usable_mib: int) -> tuple[int, int]:
    """Milli-GPU and MiB that a request takes on a device with ``usable_mib``; in MiB: no milli.

    The milli are above 1,000, more than any device has, when a request in MiB is larger than the
    device, and when the device is so small that the share would be of no memory at all.
    """
    if request.mib:
        return (0 if request.mib <= usable_mib else DEVICE_MILLI + 1), request.mib
    mib = cap_mib(request.milli, usable_mib)
    return (request.milli if mib > 0 else DEVICE_MILLI + 1), mib


def charge(request: DeviceRequest, usable_mib: int) -> int:
    """Milli-GPU that a project is charged for a request there; above 1,000 as ``share`` says it."""
    milli, mib = share(request, usable_mib)
    return milli or milli_for_mib(mib, usable_mib)


def assign(
    requests: Sequence[DeviceRequest], slots: Sequence[Slot], budget: SearchBudget | None = None
) -> SlotChoice | None:
    """A slot for every device asked for, or None when there is no such assignment."""
    budget = budget or SearchBudget()
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
        sizes = {slot.usable_mib for slot in slots}
        shares = [{size: share(request, size) for size in sizes} for request in requests]
        self._shares = [
            [shares[i][slot.usable_mib] for slot in slots] for i in range(len(requests))
        ]
        self._chosen: list[tuple[int, int]] = []
        self._hopeless: set[tuple[int, tuple[Slot, ...]]] = set()
        self.steps = 0

    def run(self) -> SlotChoice | None:
        if not self._place(0):
            return None
        return tuple(sorted(self._chosen))

    def _place(self, depth: int) -> bool:
        """Place the requests from ``depth`` on."""
        if depth == len(self._order):
            return True
        if self._hopeless and (depth, tuple(sorted(self._free))) in self._hopeless:
            return False
        number = self._order[depth]
        fitting = []  # free milli afterwards, memory of the device, free MiB afterwards, position
        for position, (slot, (milli, mib)) in enumerate(
            zip(self._free, self._shares[number], strict=True)
        ):
            if milli <= slot[0] and mib <= slot[1]:
                fitting.append((slot[0] - milli, slot[2], slot[1] - mib, position))
        fitting.sort()
        if self._combine(depth, number, fitting, 0, self._requests[number].count):
            return True
        self._hopeless.add((depth, tuple(sorted(self._free))))
        return False

    def _combine(
        self,
        depth: int,
        number: int,
        fitting: list[tuple[int, int, int, int]],
        start: int,
        missing: int,
    ) -> bool:
        """Choose ``missing`` more devices for one request, then go on with the next request."""
        if missing == 0:
            return self._place(depth + 1)
        tried: tuple[int, int, int] | None = None
        for i in range(start, len(fitting) - missing + 1):
            free_milli, usable_mib, free_mib, position = fitting[i]
            if (free_milli, usable_mib, free_mib) == tried:
                continue  # a device in the same state led nowhere
            tried = free_milli, usable_mib, free_mib
            self.steps += 1
            if self.steps > self._most:
                return False
            before = self._free[position]
            self._free[position] = Slot(free_milli, free_mib, usable_mib)
            self._chosen.append((number, position))
            if self._combine(depth, number, fitting, i + 1, missing - 1):
                return True
            self._chosen.pop()
            self._free[position] = before
        return False
