"""The headless Service through which the pods of a GPUJob find each other.

It has no ports: all it does is to give each pod the host name JOB-ROLE-INDEX.JOB, from the moment
that the pod has an address, ready or not, because programs look for their peers before they are
ready themselves.
"""

from typing import Any

from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.jobs.marks import label_value, own_labels
from gpu_scheduler.jobs.owner import owner_reference


def service(name: str, namespace: str, uid: str, project: str) -> dict[str, Any]:
    """The Service as JSON, ready to be created; ``uid`` is that of the GPUJob, which owns it."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": own_labels(name, project),
            "ownerReferences": [owner_reference(name, uid)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {LABEL_JOB: label_value(name)},
        },
    }
