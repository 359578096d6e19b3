"""Whether pods would find room: on an empty cluster, or once those that borrow had gone.

A count by devices alone: CPU and memory of nodes are left out, so it may find room where there is
none, never the other way round. It shares nothing with the planner.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.request import JobKey, PodShape, Project, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod


def fits(cluster: Cluster, free_milli: Sequence[int], kind: PodShape, pods: int) -> bool:
    """Whether so many pods would fit if so much were free on the devices of the cluster."""
    for request in kind.devices:
        found = 0
        for first, end in zip(cluster.first, cluster.first[1:], strict=False):
            free = free_milli[first:end]
            if request.count == 1:
                found += sum(milli // request.milli for milli in free)
            else:
                found += sum(milli >= request.milli for milli in free) // request.count
        if found < pods:
            return False
    return True


def without_borrowers(
    cluster: Cluster,
    projects: Mapping[ProjectName, Project],
    running: Iterable[RunningPod],
    name: ProjectName,
) -> list[int]:
    """What would be free on each device for a project, if all went that may be evicted for it.

    Those that leave already, and of other projects those that hold no more than their project
    holds above its quota; of a gang all pods together.
    """
    running = list(running)
    held: Counter[ProjectName] = Counter()
    gangs: Counter[JobKey] = Counter()
    for pod in running:
        if not pod.leaving:
            held[pod.project] += pod.milli
            if pod.gang:
                gangs[pod.job] += pod.milli
    free = list(cluster.free_milli)
    number = {device: d for d, device in enumerate(cluster.dev_id)}
    for pod in running:
        milli = gangs[pod.job] if pod.gang else pod.milli
        above = held[pod.project] - projects[pod.project].quota_milli
        if pod.leaving or (pod.project != name and milli <= above):
            for allocated in pod.devices:
                free[number[allocated.device]] += allocated.milli
    return free
