"""Devices on which more is held than they have: their newest pods go.

It takes a mistake, two writers or a GPU that shrank. A pod that takes its time to go keeps its
device full in the ledger's arrays: nothing is placed there, and the rest of the cluster need not
wait for it. Called before each plan and by ``failed_placements``.
"""

from collections.abc import Iterator

from gpu_scheduler.core.model.units import DEVICE_MILLI
from gpu_scheduler.core.verify import PodDevices, overbooked
from gpu_scheduler.runtime.common.event_reason import BOTH, EventReason
from gpu_scheduler.runtime.eviction.evictor import (
    Eviction,
    EvictionCause,
    EvictionMessage,
    Evictor,
    and_then,
)
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds
from gpu_scheduler.state.pods.pod import Stage

OVERBOOKED = EvictionCause(
    "overbooked",
    "Pods evicted from a device above capacity: stays 0.",
    EventReason(
        "Overbooked", "Warning", BOTH, "a device holds more than it has; a pod of it is evicted"
    ),
)


def evictions(state: ClusterState) -> Iterator[Eviction]:
    """The pods that have to go, the newest of a device first."""
    ledger = state.ledger
    cluster = ledger.cluster
    crowded = max((m for held in ledger.unlisted.values() for m in held.values()), default=0)
    least = min(min(cluster.free_milli, default=0), min(cluster.free_mib, default=0))
    if least >= 0 and crowded <= DEVICE_MILLI:
        return
    held = [
        PodDevices(
            pod.uid,
            pod.node,
            epoch_seconds(pod.created),
            ledger.resolved(pod.node, pod.allocation.devices),
        )
        for pod in state.pods.known.values()
        if pod.allocation is not None and pod.stage is not Stage.ENDED
    ]
    for device in overbooked(cluster, held):
        for uid in device.evict:
            pod = state.pods.known[uid]
            message = (
                f"device {device.device} of {device.node} holds {device.milli} milli-GPU and "
                f"{device.mib} of {device.usable_mib} MiB: evicting {pod.name}"
            )
            told = EvictionMessage(
                OVERBOOKED, f"{message}; {and_then(pod, 'placing it elsewhere')}"
            )
            yield Eviction(pod, told)


def relieve(state: ClusterState, evictor: Evictor) -> bool:
    """Evict them; True when that began now."""
    return sum(evictor.evict(eviction) for eviction in evictions(state)) > 0
