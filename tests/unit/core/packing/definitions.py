"""What the terms of a score are by definition, one node and one pod at a time, without numpy."""

from dataclasses import dataclass

from gpu_scheduler.core.model.assign import charge
from gpu_scheduler.core.model.devices import accepts
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.model.snapshot import DeviceType, Snapshot
from gpu_scheduler.core.packing.policy import COPIES_PERCENT, UNIT, WEIGHT
from gpu_scheduler.core.packing.target_workload import TargetWorkload

FAR = 10**9


def needs(pod_shape: PodShape, device: DeviceType) -> int:
    """Milli of one device, more than there is where it does not serve."""
    milli = charge(pod_shape.devices[0], device.usable_mib)
    return milli if accepts(pod_shape, device) and milli <= 1000 else FAR


@dataclass(frozen=True)
class State:
    """A node: its devices, their free milli and the free CPU."""

    kind: tuple[DeviceType, ...]
    free: tuple[int, ...]
    cpu: int

    @property
    def total(self) -> int:
        return sum(self.free)

    @property
    def in_use(self) -> tuple[int, ...]:
        """What is free on GPUs that are used in part."""
        return tuple(free for free in self.free if 0 < free < 1000)


def fragmentation_of(state: State, pod_shape: PodShape) -> int:
    """F_n(m)."""
    if not pod_shape.devices or state.cpu < pod_shape.cpu_milli:
        return state.total
    fits = [f >= needs(pod_shape, d) for f, d in zip(state.free, state.kind, strict=True)]
    if sum(fits) < pod_shape.devices[0].count:
        return state.total
    return sum(f for f, fit in zip(state.free, fits, strict=True) if not fit)


def fragmentation(state: State, workload: TargetWorkload) -> int:
    """F_n times WEIGHT."""
    return sum(
        weight * fragmentation_of(state, pod_shape) for pod_shape, weight in workload.typical
    )


def unused_of(state: State, pod_shape: PodShape) -> int:
    """Free GPU left when the node is filled with copies of one pod."""
    if not pod_shape.devices:
        return state.total
    count = pod_shape.devices[0].count
    asked = [needs(pod_shape, device) for device in state.kind]
    copies = sum(f // n for f, n in zip(state.free, asked, strict=True)) // count
    copies = min(copies, state.cpu // max(1, pod_shape.cpu_milli))
    return state.total - copies * count * min(asked, default=0) if copies else state.total


def unused(state: State, workload: TargetWorkload) -> int:
    """The copies term times WEIGHT."""
    return sum(weight * unused_of(state, pod_shape) for pod_shape, weight in workload.typical)


def cost(state: State, workload: TargetWorkload) -> int:
    """The default policy's cost of a state, in UNITs of a milli-GPU."""
    rest = 100 - COPIES_PERCENT
    return fragmentation(state, workload) * rest + unused(state, workload) * COPIES_PERCENT


def excess(workload: TargetWorkload, snapshot: Snapshot) -> list[float]:
    """Scarcity of each node: wanted over there, minus one, at least 0."""
    nodes = range(len(snapshot.node_shape))
    size = [len(snapshot.node_shapes[snapshot.node_shape[n]]) * 1000 for n in nodes]
    wanted = []
    for pod_shape, count in workload.wanted:
        if not pod_shape.devices:
            continue
        could = {
            n: least for n in nodes if (least := _milli_on(pod_shape, n, snapshot)) is not None
        }
        if could:
            wanted.append((min(could.values()) * count, list(could)))
    everything = sum(milli for milli, _ in wanted)
    pressure = [0.0 for _ in nodes]
    for milli, could in wanted:
        for n in could:
            part = size[n] / sum(size[other] for other in could)
            pressure[n] += milli / everything * sum(size) * part
    return [max(0.0, p / size[n] - 1) if size[n] else 0.0 for n, p in enumerate(pressure)]


def _milli_on(pod_shape: PodShape, n: int, snapshot: Snapshot) -> int | None:
    node = snapshot.cluster.nodes[n]
    if node.cpu_milli < pod_shape.cpu_milli or node.memory_bytes < pod_shape.memory_bytes:
        return None
    asked = sorted(
        needs(pod_shape, device) for device in snapshot.node_shapes[snapshot.node_shape[n]]
    )
    asked = [milli for milli in asked if milli < FAR][: pod_shape.devices[0].count]
    return sum(asked) if len(asked) == pod_shape.devices[0].count else None


def state_of(snapshot: Snapshot, node: int) -> State:
    cluster = snapshot.cluster
    a, b = cluster.first[node], cluster.first[node + 1]
    kind = snapshot.node_shapes[snapshot.node_shape[node]]
    return State(kind, tuple(cluster.free_milli[a:b]), cluster.free_cpu_milli[node])


def without(state: State, taken: dict[int, int], cpu: int) -> State:
    """The state after a pod took so much of devices (by offset) and CPU."""
    free = tuple(max(0, f - taken.get(offset, 0)) for offset, f in enumerate(state.free))
    return State(state.kind, free, state.cpu - cpu)


def placements(
    pod_request: PodRequest, node: int, snapshot: Snapshot, *, shares_first: bool
) -> list[tuple[dict[int, int], int]]:
    """Ways to put a pod on a node: milli by offset, and what is left on the devices.

    All devices for a lone request of one on alike devices, else the choice of ``Chooser``. With
    ``shares_first`` no part of a free one where one in use holds the pod.
    """
    if not snapshot.has_room(node, pod_request.pod_shape):
        return []
    choice = pod_request.chooser.choose(node)
    if choice is None:
        return []
    base, requests = snapshot.cluster.first[node], pod_request.pod_shape.devices
    kind = snapshot.node_shapes[snapshot.node_shape[node]]
    alone = len(requests) == 1 and requests[0].count == 1 and len(set(kind)) == 1
    if alone and regular(pod_request.pod_shape, snapshot, node):
        state = state_of(snapshot, node)
        milli = needs(pod_request.pod_shape, kind[0])
        most = 1000
        if shares_first and milli < 1000 and max(state.in_use, default=0) >= milli:
            most = 999
        return [({o: milli}, f - milli) for o, f in enumerate(state.free) if milli <= f <= most]
    taken: dict[int, int] = {}
    for pick in choice.picks:
        offset = pick[1] - base
        taken[offset] = taken.get(offset, 0) + snapshot.charge_milli(pick)
    return [(taken, choice.left_milli)]


def regular(pod_shape: PodShape, snapshot: Snapshot, node: int) -> bool:
    """Whether free milli say which devices a lone request fits."""
    c, mib = snapshot.cluster, pod_shape.devices[0].mib
    kind, base = snapshot.node_shapes[snapshot.node_shape[node]], c.first[node]
    return not mib or not any(
        mib <= c.free_mib[base + o] and needs(pod_shape, device) > c.free_milli[base + o]
        for o, device in enumerate(kind)
    )


def bucket(growth: int, milli: int) -> int:
    return growth // (milli * UNIT)


assert UNIT == 100 * WEIGHT
