"""Claims without which kube-scheduler binds no pod: which a pod mounts, and what is said of them.

Kube-scheduler's own sentence names no namespace, says "not found" twice and sounds as if another
node would do.
"""

import re
from itertools import islice

from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.kube.objects import Condition, Pod
from gpu_scheduler.state.pods.containers import Trouble

_NAMED = re.compile(
    r'persistentvolumeclaim "([^"]{1,253})" '
    r"(not found|is being deleted|bound to non-existent persistentvolume)"
)
_UNBOUND = "unbound immediate PersistentVolumeClaims"
_MEND = {
    "not found": "is not there: whoever made the pod has to make it, or name another",
    "is being deleted": "is being deleted: whoever made the pod has to make it anew",
    "bound to non-existent persistentvolume": (
        "is bound to a PersistentVolume that is gone: whoever made the pod has to make it anew"
    ),
}

VOLUMES = "spec.volumes: "  # how every sentence begins about a pod that is not planned for one
MOST_CLAIMS = 16  # that one pod names; what is beyond is left to kube-scheduler


def mounted(pod: Pod) -> tuple[str, ...]:
    """Names of the claims that a pod mounts, in order, each once."""
    found = ((volume.persistent_volume_claim or {}).get("claimName") for volume in pod.spec.volumes)
    names = dict.fromkeys(name for name in found if name and isinstance(name, str))
    return tuple(islice(names, MOST_CLAIMS))


def trouble(pod: Pod, unscheduled: Condition) -> Trouble | None:
    """Why a pod that has a place is not bound there, where a claim is the cause."""
    namespace = pod.metadata.namespace
    found = _NAMED.search(unscheduled.message)
    if found is not None:
        what = f"PersistentVolumeClaim {found[1]} of namespace {namespace} {_MEND[found[2]]}"
    elif _UNBOUND in unscheduled.message:
        what = (
            f"a PersistentVolumeClaim of pod {pod.metadata.name} is not bound to a volume, and"
            f" no other node helps: kubectl get pvc -n {namespace} shows which"
        )
    else:
        return None
    return Trouble(Reason.VOLUME_NOT_MOUNTED, what)
