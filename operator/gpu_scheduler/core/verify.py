"""The check that no device is given out twice, whatever is written in the ledger.

A forged or restored object, or a clock that jumped, could put more on a device than it has. The
operator asks each cycle, from what the watch shows, and evicts the newest pods above the line
before it places anything there. Invariant: without the evicted pods every device is within its
1,000 milli and its usable MiB. A pod alone on a device is not evicted for its MiB: it harms nobody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.core.model.units import DEVICE_MILLI


@dataclass(frozen=True, slots=True)
class PodDevices:
    """A pod that has not ended and the devices it holds."""

    pod: PodUID
    node: str
    since: float  # epoch seconds, e.g. when it was created or bound
    devices: tuple[DeviceAllocation, ...]


@dataclass(frozen=True, slots=True)
class Overbooked:
    """A device above its line; ``evict`` names pods, newest first, to bring it below."""

    node: str
    device: str
    milli: int
    mib: int
    usable_mib: int  # 0 when the device is not known
    evict: tuple[PodUID, ...]


Device = tuple[str, str]  # node, id of the device


def overbooked(cluster: Cluster, holders: Iterable[PodDevices]) -> tuple[Overbooked, ...]:
    """Devices above 1,000 milli or their usable MiB, by node and id, with the pods to evict.

    A pod that must leave one device no longer counts on the next, so no pod is named twice.
    """
    shares: dict[Device, list[tuple[PodDevices, int, int]]] = {}
    for holder in holders:
        for allocated in holder.devices:
            key = (holder.node, allocated.device)
            shares.setdefault(key, []).append((holder, allocated.fraction_milli, allocated.mib))
    usable_mib: Mapping[Device, int] | None = None
    gone: set[PodUID] = set()
    found = []
    for key in sorted(key for key, held in shares.items() if len(held) > 1 or held[0][1] > 1000):
        if usable_mib is None:
            usable_mib = _usable_mib(cluster)
        usable = usable_mib.get(key, 0)
        held = [share for share in shares[key] if share[0].pod not in gone]
        milli, mib = sum(s[1] for s in held), sum(s[2] for s in held)
        evict = _above(held, usable)
        if evict:
            gone.update(evict)
            found.append(Overbooked(*key, milli, mib, usable, evict))
    return tuple(found)


def _usable_mib(cluster: Cluster) -> dict[Device, int]:
    return {
        (node.name, cluster.dev_id[d]): cluster.dev_usable_mib[d]
        for n, node in enumerate(cluster.nodes)
        for d in range(cluster.first[n], cluster.first[n + 1])
    }


def _above(held: list[tuple[PodDevices, int, int]], usable_mib: int) -> tuple[PodUID, ...]:
    """Pods to evict from one device, newest first, until the rest is within the line."""
    by_age: dict[PodUID, tuple[int, int]] = {}
    for holder, milli, mib in sorted(held, key=lambda s: (s[0].since, s[0].pod)):
        before = by_age.get(holder.pod, (0, 0))
        by_age[holder.pod] = (before[0] + milli, before[1] + mib)
    evict = []
    for pod in reversed(list(by_age)):
        milli = sum(m for m, _ in by_age.values())
        mib = sum(m for _, m in by_age.values())
        crowded = usable_mib > 0 and mib > usable_mib and len(by_age) > 1
        if milli <= DEVICE_MILLI and not crowded:
            break
        evict.append(pod)
        del by_age[pod]
    return tuple(evict)
