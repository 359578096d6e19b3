"""Which devices need a holder pod, and which holders have nothing to hold any more.

Pure: from what GPUJobs hold, the holders that there are and the time, to what must be created and
deleted. A holder stays for a while after its device is free, so one that is used again soon costs
nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpu_scheduler.api.names import holder_name
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.state.pods.pod import PodRecord, Stage


@dataclass(frozen=True, slots=True)
class PlaceholderNeed:
    """A device that needs a holder; ``open``: its node takes new pods."""

    node: str
    device: str
    open: bool = True


@dataclass(frozen=True, slots=True)
class PlaceholderChanges:
    """What to do about holders.

    Attributes:
        create: names of pods, and what they hold.
        delete: holders that hold nothing, or not any more.
        idle_since: by name, when an idle one was first seen to be so, monotonic seconds.
    """

    create: Mapping[str, PlaceholderNeed]
    delete: tuple[PodRecord, ...]
    idle_since: Mapping[str, float]


def needed(
    cluster: Cluster,
    takes_pods: Callable[[str], bool],
    unlisted: Mapping[str, Iterable[str]],
    *,
    whole_nodes: bool,
) -> dict[str, PlaceholderNeed]:
    """Devices of which GPUJobs hold something, by the name of the pod that should hold them.

    Args:
        cluster: as it stands.
        takes_pods: whether a node does, by its name.
        unlisted: devices that are held and that their node does not list: their holders stay.
        whole_nodes: with all other devices of their nodes.
    """
    lost = [
        PlaceholderNeed(node, d, open=False) for node, devices in unlisted.items() for d in devices
    ]
    slots = (*lost, *_slots(cluster, takes_pods, whole_nodes))
    return {holder_name(slot.node, slot.device): slot for slot in slots}


def _slots(
    cluster: Cluster, takes_pods: Callable[[str], bool], whole_nodes: bool
) -> Iterator[PlaceholderNeed]:
    free, first = cluster.free_milli, cluster.first
    for n, node in enumerate(cluster.nodes):
        devices = range(first[n], first[n + 1])
        used = [d for d in devices if free[d] < DEVICE_MILLI]
        is_open = bool(used) and takes_pods(node.name)
        for d in devices if used and whole_nodes else used:
            yield PlaceholderNeed(node.name, cluster.dev_id[d], is_open)


def changes(
    slots: Mapping[str, PlaceholderNeed],
    holders: Iterable[PodRecord],
    idle_since: Mapping[str, float],
    now: float,
    keep_seconds: float,
) -> PlaceholderChanges:
    """What to create and what to delete.

    Args:
        slots: from ``needed``.
        holders: those that there are, ended ones and leaving ones too.
        idle_since: of the time before.
        now: monotonic seconds.
        keep_seconds: how long a holder stays once its device is free.
    """
    there = {pod.name: pod for pod in holders}
    delete: list[PodRecord] = []
    idle: dict[str, float] = {}
    for name, pod in sorted(there.items()):
        if pod.deleting:
            continue
        if pod.stage is Stage.ENDED:
            delete.append(pod)
        elif name not in slots:
            idle[name] = idle_since.get(name, now)
            # One that still waits for its node holds nothing that would be worth keeping.
            if not pod.node or now - idle[name] >= keep_seconds:
                delete.append(pod)
    create = {name: slot for name, slot in sorted(slots.items()) if slot.open and name not in there}
    return PlaceholderChanges(create, tuple(delete), idle)
