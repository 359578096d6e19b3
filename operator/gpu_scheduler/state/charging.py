"""What a pod's news mean for the ledger: it takes its share, changes it, or gives it back.

A pod holds what its allocation says from its node on until it has ended; one that gets GPUs from
the device plugin closes its node to us. Called by ``world`` for every event of a pod.
"""

from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.ledger import Charge, Ledger
from gpu_scheduler.state.pods import PodRecord, Stage
from gpu_scheduler.state.shape import pod_resources


def charge(ledger: Ledger, old: PodRecord | None, new: PodRecord, pod: Pod) -> bool:
    """Record what a pod holds now; True when that is not what it held before."""
    changed = False
    was_foreign = old is not None and old.foreign_gpus
    if new.node and (new.foreign_gpus or was_foreign):
        holds = new.foreign_gpus and new.stage is not Stage.ENDED
        label = f"{new.namespace}/{new.name}" if holds else None
        changed = ledger.set_foreign(new.uid, new.node, label)
    if new.stage is Stage.ENDED:
        return ledger.release_pod(new.uid) or changed
    if new.node:
        grants = new.allocation.grants if new.allocation else ()
        held = Charge(new.node, new.namespace, *pod_resources(pod), grants)
        return ledger.charge_pod(new.uid, held) or changed
    return changed
