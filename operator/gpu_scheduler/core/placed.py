"""A pod is put on a node of the snapshot, and the decision says so. Called wherever pods start."""

from gpu_scheduler.core.decision import Grant, Place
from gpu_scheduler.core.devices import Choice
from gpu_scheduler.core.peer_masks import Peers
from gpu_scheduler.core.request import WaitingJob, WaitingPod
from gpu_scheduler.core.snapshot import Snapshot


def placed(
    snapshot: Snapshot,
    peers: Peers | None,
    job: WaitingJob,
    pod: WaitingPod,
    node: int,
    choice: Choice,
) -> Place:
    """Put a pod on a node of the snapshot; the decision that says so."""
    snapshot.take(node, pod.shape, choice.picks, job.project)
    if peers is not None:
        peers.add(pod, node)
    cluster = snapshot.cluster
    ids = cluster.dev_id
    grants = tuple([Grant(c, ids[d], milli, mib) for c, d, milli, mib in choice.picks])
    return Place(job.key, pod.uid, cluster.nodes[node].name, grants)
