"""The target workload M: which kinds of pods are typical, and how frequent each is.

Two views of the same counts. ``typical`` are the most frequent kinds that together cover 95 % of
the pods, without their memory, for the fragmentation terms. ``wanted`` is everything with its
memory, rare large pods too, for the scarcity of nodes. Both are in a fixed order, so equal counts
give equal scores.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpu_scheduler.core.model.request import DeviceRequest, NodeFilter, PodShape
from gpu_scheduler.core.packing.policy import COVER_PERCENT, WEIGHT

GIB = 1 << 30
MOST_WANTED = 1_000  # distinct pod shapes that the scarcity of nodes looks at


@dataclass(frozen=True, slots=True, eq=False)
class TargetWorkload:
    """Pod shapes with the weights that they have among recent pods; one is equal only to itself."""

    typical: tuple[tuple[PodShape, int], ...]  # weights sum to WEIGHT
    wanted: tuple[tuple[PodShape, int], ...]  # counts


def target_workload_of(counts: Mapping[PodShape, int]) -> TargetWorkload:
    """The target workload of pods counted by pod shape; there is at least one."""
    wanted: Counter[PodShape] = Counter()
    slim: Counter[PodShape] = Counter()
    for pod_shape, count in counts.items():
        plain = one_request(pod_shape)
        wanted[plain] += count
        slim[replace(plain, memory_bytes=0)] += count
    return TargetWorkload(typical_of(slim), tuple(_ranked(wanted)[:MOST_WANTED]))


def typical_of(counts: Mapping[PodShape, int]) -> tuple[tuple[PodShape, int], ...]:
    """The most frequent pod shapes that cover 95 % of the pods, with integer weights.

    Source: Weng et al., ATC 2023, section 4.1 (target workload).
    """
    total, covered, kept = sum(counts.values()), 0, []
    for pod_shape, count in _ranked(counts):
        kept.append((pod_shape, count))
        covered += count
        if covered * 100 >= total * COVER_PERCENT:
            break
    return tuple(
        (pod_shape, w) for (pod_shape, _), w in zip(kept, _weights(kept, covered), strict=True)
    )


def one_request(pod_shape: PodShape) -> PodShape:
    """The pod shape as the target workload counts it: one request for devices, no choice of nodes.

    A pod with several requests counts as one for as many devices with the largest of them.
    """
    devices = pod_shape.devices
    if len(devices) > 1:
        largest = max(devices, key=lambda r: (r.milli, r.mib))
        count = sum(request.count for request in devices)
        devices = (DeviceRequest(0, count, largest.milli, largest.mib),)
    elif devices and devices[0].container:
        devices = (replace(devices[0], container=0),)
    return replace(
        pod_shape,
        devices=devices,
        ephemeral_bytes=0,
        where=NodeFilter(),
        scalars=(),
        isolation="",
    )


def _ranked(counts: Mapping[PodShape, int]) -> list[tuple[PodShape, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], _order(entry[0])))


def _order(pod_shape: PodShape) -> tuple[object, ...]:
    requests = tuple((r.count, r.milli, r.mib) for r in pod_shape.devices)
    return (
        pod_shape.cpu_milli,
        requests,
        pod_shape.models,
        pod_shape.min_compute,
        pod_shape.memory_bytes,
    )


def _weights(kept: Iterable[tuple[PodShape, int]], total: int) -> list[int]:
    """Counts scaled to WEIGHT; what rounding down leaves goes to the first."""
    weights = [count * WEIGHT // total for _, count in kept]
    weights[0] += WEIGHT - sum(weights)
    return weights


def _gpu(count: int, milli: int) -> PodShape:
    # No CPU and no memory: what they need beside the GPU is not known before there are any, and a
    # guess above what a small node has would call all of its GPUs useless to them.
    return PodShape((DeviceRequest(0, count, milli),))


DEFAULT_COUNTS: Mapping[PodShape, int] = {
    _gpu(1, 1000): 40,
    _gpu(1, 500): 20,
    _gpu(1, 250): 15,
    _gpu(1, 125): 5,
    _gpu(2, 1000): 5,
    _gpu(4, 1000): 3,
    _gpu(8, 1000): 2,
    PodShape(cpu_milli=1000, memory_bytes=4 * GIB): 10,
}
"""Before anything is known: half of the GPU pods want whole devices, the others fractions."""

DEFAULT = target_workload_of(DEFAULT_COUNTS)
