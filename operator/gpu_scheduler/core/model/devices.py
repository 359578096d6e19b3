"""Choosing the devices of one node for one pod.

Best fit: the devices with the least left after the pod; a request in MiB first takes the cheapest
device that holds it. Whole GPUs take fully free devices. One request of any count
is solved by taking the best ``count`` devices; several requests go to the exact search of
``assign``. Invariant: picks never exceed what is free in milli or in MiB.
"""

from typing import NamedTuple

from gpu_scheduler.core.model.assign import SearchBudget, Slot, assign, charge, share
from gpu_scheduler.core.model.request import DeviceRequest, PodShape
from gpu_scheduler.core.model.snapshot import DeviceType, IndexedAllocations, NodeShape, Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.products import means

MOST_KNOWN = 10_000  # searches remembered between cycles


def accepts(pod_shape: PodShape, device: DeviceType) -> bool:
    """Whether a device is of the right sort, and as many of it are on offer as pods want."""
    wanted = pod_shape.whole_devices if device.counts else 0
    return qualifies(pod_shape, device) and (not wanted or wanted in device.counts)


def qualifies(pod_shape: PodShape, device: DeviceType) -> bool:
    """Whether model and compute capability of a device suit the pod shape."""
    if device.compute < pod_shape.min_compute:
        return False
    return not pod_shape.models or any(means(model, device.model) for model in pod_shape.models)


# Offset on the node, milli that a project is charged, milli, MiB, rank of the device.
Seat = tuple[int, int, int, int, int]


class NodeAllocation(NamedTuple):
    """Devices for a pod on a node. ``rank`` and ``left_milli`` order it: less is better."""

    picks: IndexedAllocations
    left_milli: int  # free on the touched devices afterwards, if what it costs were taken there
    rank: int  # the sum of those of the touched devices, 0 unless the request is in MiB
    milli: int  # that it costs


class Chooser:
    """Chooses devices for pods of one pod shape, on any node of one snapshot."""

    __slots__ = (
        "_budget",
        "_eligible",
        "_known",
        "_nominal_milli",
        "_seats",
        "_snapshot",
        "by_size",
        "pod_shape",
    )

    def __init__(self, pod_shape: PodShape, snapshot: Snapshot) -> None:
        self.pod_shape = pod_shape
        self.by_size = any(request.mib for request in pod_shape.devices)
        self._snapshot = snapshot
        self._budget = SearchBudget()
        self._nominal_milli = pod_shape.nominal_milli
        self._seats: dict[int, tuple[Seat, ...]] = {}
        self._eligible: dict[int, tuple[int, ...]] = {}  # node shape -> offsets of its devices
        self._known: dict[tuple[object, ...], tuple[tuple[int, int], ...] | None] = {}

    def renew(self) -> None:
        """A new cycle begins: as many steps of search as before the first."""
        self._budget = SearchBudget()
        if len(self._known) > MOST_KNOWN:
            self._known.clear()

    def eligible(self, shape: int) -> tuple[int, ...]:
        """Offsets of the devices that could serve the pod shape, when free, on nodes of a kind."""
        offsets = self._eligible.get(shape)
        if offsets is None:
            devices = self._snapshot.node_shapes[shape]
            offsets = tuple(
                o
                for o, device in enumerate(devices)
                if accepts(self.pod_shape, device)
                and any(
                    charge(r, device.usable_mib) <= DEVICE_MILLI for r in self.pod_shape.devices
                )
            )
            self._eligible[shape] = offsets
        return offsets

    def devices(self, shape: int) -> NodeShape:
        """The devices of a kind of node."""
        return self._snapshot.node_shapes[shape]

    def seats(self, shape: int) -> tuple[Seat, ...]:
        """What a lone request takes on each eligible device of a kind of node."""
        seats = self._seats.get(shape)
        if seats is None:
            request, devices = self.pod_shape.devices[0], self._snapshot.node_shapes[shape]
            usable = [(offset, devices[offset]) for offset in self.eligible(shape)]
            seats = self._seats[shape] = tuple(
                (
                    o,
                    charge(request, device.usable_mib),
                    *share(request, device.usable_mib),
                    device.rank if self.by_size else 0,
                )
                for o, device in usable
            )
        return seats

    def choose(self, node: int, left_milli: int | None = None) -> NodeAllocation | None:
        """The devices that a pod would get on a node now, or None when they do not fit.

        ``left_milli`` asks for a device with exactly that left; only for a lone request of one.
        """
        requests = self.pod_shape.devices
        if not requests:
            return NodeAllocation((), 0, 0, 0)
        if self._snapshot.node_free_milli[node] < self._nominal_milli:
            return None
        if len(requests) > 1:
            return self._choose_several(node)
        if left_milli is not None:
            return self._choose_left(node, requests[0].container, left_milli)
        if requests[0].count == 1 and requests[0].milli:
            return self._choose_one(node, requests[0].container)
        return self._choose_alike(node, requests[0])

    def fits_empty(self, shape: int) -> bool:
        """Whether the devices of a node of this kind hold the pod when nothing else is there."""
        if not self.pod_shape.devices:
            return True
        devices = self._snapshot.node_shapes[shape]
        slots = [
            Slot(DEVICE_MILLI, devices[o].usable_mib, devices[o].usable_mib)
            for o in self.eligible(shape)
        ]
        return assign(self.pod_shape.devices, slots) is not None

    def least_milli(self, shape: int) -> int:
        """The smallest charge, in milli-GPU, that a pod can cause on a node of a kind."""
        devices = self._snapshot.node_shapes[shape]
        largest = max((devices[o].usable_mib for o in self.eligible(shape)), default=0)
        return sum(r.count * charge(r, largest) for r in self.pod_shape.devices)

    def _choose_one(self, node: int, container: int) -> NodeAllocation | None:
        """One device: the first of those with the least left."""
        cluster = self._snapshot.cluster
        free_milli, free_mib = cluster.free_milli, cluster.free_mib
        base = cluster.first[node]
        best, pick = DEVICE_MILLI, None
        for offset, _, milli, mib, _ in self.seats(self._snapshot.node_shape[node]):
            left = free_milli[base + offset] - milli
            if 0 <= left < best and mib <= free_mib[base + offset]:
                best, pick = left, (container, base + offset, milli, mib)
                if left == 0:
                    break
        return None if pick is None else NodeAllocation((pick,), best, 0, pick[2])

    def _choose_left(self, node: int, container: int, left: int) -> NodeAllocation | None:
        """The first device that has exactly so much left afterwards."""
        cluster = self._snapshot.cluster
        base = cluster.first[node]
        for offset, cost, milli, mib, rank in self.seats(self._snapshot.node_shape[node]):
            device = base + offset
            if cluster.free_milli[device] - cost == left and mib <= cluster.free_mib[device]:
                return NodeAllocation(((container, device, milli, mib),), left, rank, cost)
        return None

    def _choose_alike(self, node: int, request: DeviceRequest) -> NodeAllocation | None:
        """The best ``count`` devices, each with the same request."""
        cluster = self._snapshot.cluster
        free_milli, free_mib = cluster.free_milli, cluster.free_mib
        base = cluster.first[node]
        fitting = []
        for offset, cost, milli, mib, rank in self.seats(self._snapshot.node_shape[node]):
            free = free_milli[base + offset]
            if milli <= free and mib <= free_mib[base + offset]:
                fitting.append((rank, max(0, free - cost), base + offset, milli, mib, cost))
        if len(fitting) < request.count:
            return None
        fitting.sort()
        del fitting[request.count :]
        return NodeAllocation(
            tuple((request.container, fit[2], fit[3], fit[4]) for fit in fitting),
            sum(fit[1] for fit in fitting),
            sum(fit[0] for fit in fitting),
            sum(fit[5] for fit in fitting),
        )

    def _choose_several(self, node: int) -> NodeAllocation | None:
        cluster = self._snapshot.cluster
        shape, base = self._snapshot.node_shape[node], cluster.first[node]
        offsets = self.eligible(shape)
        together = len(self.pod_shape.devices)
        slots = [
            Slot(
                cluster.milli_together(d, together), cluster.free_mib[d], cluster.dev_usable_mib[d]
            )
            for d in (base + o for o in offsets)
        ]
        key = tuple(slots)  # nodes in the same state share one search
        if key in self._known:
            found = self._known[key]
        else:
            found = self._known[key] = assign(self.pod_shape.devices, slots, self._budget)
        if found is None:
            return None
        picks = []
        costs = 0
        left: dict[int, int] = {}
        for number, position in found:
            request, slot = self.pod_shape.devices[number], slots[position]
            milli, mib = share(request, slot.usable_mib)
            picks.append((request.container, base + offsets[position], milli, mib))
            cost = charge(request, slot.usable_mib)
            costs += cost
            free = left.get(position, cluster.free_milli[base + offsets[position]])
            left[position] = max(0, free - cost)
        devices = self._snapshot.node_shapes[shape]
        rank = sum(devices[offsets[p]].rank for p in left) if self.by_size else 0
        return NodeAllocation(tuple(picks), sum(left.values()), rank, costs)
