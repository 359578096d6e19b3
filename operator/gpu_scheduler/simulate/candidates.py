"""Node by node, what comes closest to what a pod wants, and what is missing there.

Asked of the planner's own snapshot at the end of a plan, and answered with the planner's own
choices, masks and words. Those nodes first that lack the least.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpu_scheduler.core.explain.shortage import lacks
from gpu_scheduler.core.explain.unsatisfiable import refusal, too_small
from gpu_scheduler.core.fit.placement import Placer
from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model import fit, wording
from gpu_scheduler.core.model.devices import qualifies
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.model.units import DEVICE_MILLI, gpu_from_milli
from gpu_scheduler.core.queue.pod_group import PodGroup

Json = dict[str, Any]


@dataclass(frozen=True, order=True, slots=True)
class Distance:
    """How much a node lacks; less is closer.

    Attributes:
        kind: 0: what is taken there comes free; 1: it takes no pods at present; 2: it never does
            for this pod; 3: its GPUs never do.
        things: how many things are missing.
        milli: GPU that is missing.
        rest: CPU and memory that are.
        free_milli: GPU that is free, with a minus.
        node: its number.
    """

    kind: int
    things: int
    milli: int
    rest: tuple[int, int]
    free_milli: int
    node: int


def candidates(session: PlannerCache, group: PodGroup) -> list[Json]:
    """All nodes that have a GPU, the closest first, for a pod; of a gang for its first member."""
    placer, member = Placer(session), group.members[0]
    found = [
        _judge(placer, group, node)
        for node in range(len(session.snapshot.cluster.nodes))
        if not member[1].pod_shape.devices or _has_devices(session.snapshot, node)
    ]
    found.sort(key=lambda each: each[0])
    return [body for _, body in found]


def _has_devices(snapshot: Snapshot, node: int) -> bool:
    first = snapshot.cluster.first
    return first[node] < first[node + 1]


def _judge(placer: Placer, group: PodGroup, node: int) -> tuple[Distance, Json]:
    snapshot, (pod, demand) = placer.snapshot, group.members[0]
    cluster, info = snapshot.cluster, snapshot.cluster.nodes[node]
    devices = _best(demand, node, snapshot)
    kind, said, milli, rest = 0, list[str](), 0, (0, 0)
    if (unsuited := _unsuited(demand, node, snapshot)) is not None:
        kind, said = 3, [unsuited]
    elif not fit.matches(demand.pod_shape.where, info):
        kind, said = 2, [refusal(demand.pod_shape, info)]
    elif small := too_small(demand.pod_shape, info):
        kind, said = 2, [small]
    else:
        if demand.chooser.choose(node) is None:
            milli, gpu = _gap(demand, node, devices, snapshot)
            said.append(gpu)
        (_, *gaps), _, others = lacks(demand, node, snapshot)
        said += others
        rest = gaps[0], gaps[1]
        if placer.affinity is not None and not placer.affinity.allows(pod, demand, node):
            said.append("a rule about other pods forbids it")
        closed = info.closed_to(demand.pod_shape)
        if closed or info.name in pod.avoid:
            kind = 1
            said.append(closed or "is left out for a while: a pod of the job failed there")
    if not said and (held := placer.most_on(group, node)) < len(group.members):
        apart = ", none of which share a GPU" if group.needs.gang.distinct else ""
        said.append(f"room for {held} of {wording.pods(len(group.members))} at once{apart}")
    base = cluster.first[node]
    body = {
        "node": info.name,
        "fits": not said,
        "lacks": said,
        "missingGPU": gpu_from_milli(milli),
        "freeGPU": gpu_from_milli(snapshot.node_free_milli[node]),
        "devices": [
            {
                "number": device - base,
                "device": cluster.dev_id[device],
                "model": cluster.dev_model[device],
                "freeGPU": gpu_from_milli(cluster.free_milli[device]),
                "freeMemoryMiB": cluster.free_mib[device],
                **({"trouble": t} if (t := cluster.dev_trouble.get(device)) else {}),
            }
            for device in devices
        ],
    }
    return Distance(kind, len(said), milli, rest, -snapshot.node_free_milli[node], node), body


def _unsuited(demand: PodRequest, node: int, snapshot: Snapshot) -> str | None:
    """Why the GPUs of a node would not do if they were free; None: they would."""
    pod_shape, kind = demand.pod_shape, snapshot.node_shape[node]
    if demand.chooser.fits_empty(kind):
        return None
    devices = snapshot.node_shapes[kind]
    suited = [device for device in devices if qualifies(pod_shape, device)]
    if not suited:
        return f"other GPUs: {wording.names(sorted({device.model for device in devices}))}"
    largest = max(device.usable_mib for device in suited)
    if any(request.mib > largest for request in pod_shape.devices):
        return f"its GPUs have {largest} MiB usable"
    return f"has {wording.gpu_count(len(demand.chooser.eligible(kind)))} of that kind in all"


def _gaps(demand: PodRequest, node: int, snapshot: Snapshot) -> Iterator[tuple[int, int, int, int]]:
    """Of each device that could serve a lone request: milli and MiB missing, rest, the device."""
    cluster = snapshot.cluster
    for offset, cost, milli, mib, _ in demand.chooser.seats(snapshot.node_shape[node]):
        device = cluster.first[node] + offset
        short_mib = max(0, mib - cluster.free_mib[device])
        short = max(0, milli - cluster.free_milli[device])
        if not milli and short_mib:
            short = max(1, cost - cluster.free_milli[device])
        yield short, short_mib, cluster.free_milli[device], device


def _best(demand: PodRequest, node: int, snapshot: Snapshot) -> list[int]:
    """The devices that come closest, as many as are wanted."""
    requests, cluster = demand.pod_shape.devices, snapshot.cluster
    if len(requests) == 1 and (gaps := sorted(_gaps(demand, node, snapshot))):
        return [device for *_, device in gaps[: requests[0].count]]
    wanted = max((request.count for request in requests), default=0)
    devices = range(cluster.first[node], cluster.first[node + 1])
    return sorted(devices, key=lambda d: (-cluster.free_milli[d], d))[:wanted]


def _gap(demand: PodRequest, node: int, best: list[int], snapshot: Snapshot) -> tuple[int, str]:
    """How much GPU is missing, and in words."""
    cluster, requests = snapshot.cluster, demand.pod_shape.devices
    if len(requests) > 1:
        free = snapshot.node_free_milli[node]
        total = f"{wording.gpus(free)} free in all, not in the pieces that it wants"
        return max(1, demand.least_milli - free), total
    (request,) = requests
    gaps = sorted(_gaps(demand, node, snapshot))[: request.count]
    missing = max(1, sum(milli for milli, *_ in gaps))
    if request.count > 1:
        ready = sum(not milli and not mib for milli, mib, *_ in gaps)
        what = "fully free" if request.milli == DEVICE_MILLI else "free enough"
        return missing, f"{ready} of the {request.count} GPUs wanted {what}"
    short, short_mib, free, device = gaps[0]
    number = f"GPU {device - cluster.first[node]}"
    if request.mib or not short:
        wanted = cluster.free_mib[device] + short_mib
        return missing, f"{number} has {cluster.free_mib[device]} MiB free of {wanted} wanted"
    wanted = free + short
    return missing, f"{number} has {gpu_from_milli(free)} free of {gpu_from_milli(wanted)} wanted"
