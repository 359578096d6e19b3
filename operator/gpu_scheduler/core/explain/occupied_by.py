"""Who holds what a pod waits for, and when a time limit frees it.

In sentences only of the first few jobs of a project, and from a bounded number of nodes: those
about thousands of waiting jobs must not change whenever any pod ends.
"""

from collections.abc import Iterable

from gpu_scheduler.core.model import wording
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Reason, Reservation
from gpu_scheduler.core.model.pod_request import PodRequest
from gpu_scheduler.core.model.running_pods import RunningPod, RunningPods
from gpu_scheduler.core.model.snapshot import Snapshot
from gpu_scheduler.core.queue.pod_group import PodGroup

MOST_NODES = 32  # looked at for one sentence
NEVER = float("inf")
ON_DEVICES = (Reason.WAITING_FOR_GPU, Reason.FRAGMENTED, Reason.WAITING_FOR_GANG)


def holding(
    reason: Reason,
    group: PodGroup,
    snapshot: Snapshot,
    running_pods: RunningPods,
    most_nodes: int | None = None,
) -> list[RunningPod]:
    """The pods that hold what a group waits for: its project's share, or devices that would do.

    ``most_nodes``: of so many nodes; None: of all.
    """
    if reason is Reason.WAITING_FOR_QUOTA:
        return [pod for pod in running_pods.of(group.project.name) if pod.devices]
    if reason not in ON_DEVICES:
        return []
    pod, pod_request = group.members[0]
    nodes = pod_request.usable[:most_nodes]
    return _pods_on(nodes, pod_request, pod.avoid, snapshot, running_pods)


def _pods_on(
    nodes: Iterable[int],
    pod_request: PodRequest,
    avoid: frozenset[str],
    snapshot: Snapshot,
    running_pods: RunningPods,
) -> list[RunningPod]:
    """The pods on those devices of some nodes that would do."""
    cluster = snapshot.cluster
    found: list[RunningPod] = []
    for n in nodes:
        node = cluster.nodes[n].name
        if node in avoid:
            continue
        offsets = pod_request.chooser.eligible(snapshot.node_shape[n])
        would_do = {cluster.dev_id[cluster.first[n] + offset] for offset in offsets}
        found += [
            pod
            for pod in running_pods.on(node)
            if any(allocated.device in would_do for allocated in pod.devices)
        ]
    return found


def held_by(reason: Reason, pods: Iterable[RunningPod], cluster: Cluster) -> str:
    """Their jobs: 'held by a/x (until 12:05Z at the latest), a/y', of a project's share how much.

    Those first that end soonest.
    """
    jobs: dict[str, list[RunningPod]] = {}
    for pod in pods:
        jobs.setdefault(cluster.name_of(pod.job), []).append(pod)
    if not jobs:
        return ""
    about = _part if reason is Reason.WAITING_FOR_QUOTA else _until
    ranked = sorted(jobs.items(), key=lambda item: (first_end(item[1]), item[0]))
    told = [f"{job}{about(each)}" for job, each in ranked[: wording.MOST_NAMES]]
    return f"; held by {wording.names(told, of=len(ranked))}"


def not_running(milli: int) -> str:
    """What of a project's share is held by places whose pods do not run; behind who holds."""
    return f", and pods that are about to start ({wording.cpu(milli)})" if milli > 0 else ""


def until(start: float | None) -> str:
    """When reserved room is complete, as far as that is known."""
    return f", complete by {wording.at(start)} at the latest" if start is not None else ""


def others(reservations: Iterable[Reservation], pod_request: PodRequest, snapshot: Snapshot) -> str:
    """For whom room is kept on nodes that a pod could use."""
    reservations = tuple(reservations)
    if not reservations:
        return ""
    cluster = snapshot.cluster
    names = {cluster.nodes[n].name for n in pod_request.usable}
    kept = (reservation for reservation in reservations if reservation.node in names)
    found = sorted(
        {f"{cluster.name_of(reservation.job)} on {reservation.node}" for reservation in kept}
    )
    return f"; room is kept for {wording.names(found)}" if found else ""


def is_open(reservation: Reservation, cluster: Cluster, node: int | None) -> bool:
    """Whether some of the room that is kept is free; ``node``: its number."""
    kept = {allocated.device for allocated in reservation.devices}
    if node is None or not kept:
        return not kept
    devices = range(cluster.first[node], cluster.first[node + 1])
    return any(cluster.free_milli[d] > 0 and cluster.dev_id[d] in kept for d in devices)


def first_end(pods: Iterable[RunningPod]) -> float:
    """When the first of some pods ends at the latest; ``NEVER``: no time limit ends any."""
    return min(NEVER if pod.ends is None else pod.ends for pod in pods)


def _until(pods: list[RunningPod]) -> str:
    end = first_end(pods)
    if any(pod.leaving for pod in pods):
        return " (ending)"
    return "" if end == NEVER else f" (until {wording.at(end)} at the latest)"


def _part(pods: list[RunningPod]) -> str:
    when = _until(pods).strip(" ()")
    held = wording.cpu(sum(pod.milli for pod in pods))
    return f" ({held}, {when})" if when else f" ({held})"
