"""What a pod's news mean for the ledger: it takes its share, changes it, or gives it back.

A pod holds what its allocation says, or gets from the device plugin, from its node on until it has
ended; so one that the kubelet rejected holds nothing.
"""

from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.nodes.ledger import Charge, Ledger
from gpu_scheduler.state.pods.pod import PodRecord, Stage
from gpu_scheduler.state.pods.pod_shape import pod_resources


def charge(ledger: Ledger, new: PodRecord, pod: Pod) -> bool:
    """Record what a pod holds now; True when that is not what it held before."""
    if new.stage is Stage.ENDED:
        return ledger.release_pod(new.uid)
    if not new.node:
        return False
    grants = new.allocation.grants if new.allocation else ()
    need = pod_resources(pod)
    held = Charge(new.node, new.namespace, *need, grants, new.name, new.plugin)
    return ledger.charge_pod(new.uid, held)
