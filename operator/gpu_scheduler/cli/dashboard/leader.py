"""Where the dashboard is: the pod that leads, and the port inside it."""

from dataclasses import dataclass

from gpu_scheduler.api.names import LEASE
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.kube import paths

_PORT_NAME = "dashboard"


@dataclass(frozen=True, slots=True)
class Leader:
    """The pod that leads; ``port``: of the dashboard in it."""

    pod: str
    port: int


def leader(cluster: ClusterAccess, namespace: str) -> Leader:
    """Who leads in the operator's namespace.

    Raises:
        Failed: nobody, or it serves no dashboard.
        errors.ApiError: Lease or pod may not be read.
    """
    lease = cluster.client.get(paths.lease(namespace, LEASE))
    pod = str((lease.get("spec") or {}).get("holderIdentity") or "").rpartition("_")[0]
    if not pod:
        raise Failed("nobody leads, so there is nothing to see; kubectl gpu check says more")
    spec = cluster.client.get(paths.pod(namespace, pod)).get("spec") or {}
    for container in spec.get("containers") or ():
        for port in container.get("ports") or ():
            if port.get("name") == _PORT_NAME:
                return Leader(pod, int(port["containerPort"]))
    raise Failed(
        "the dashboard is off; who owns the release turns it on: "
        "helm upgrade --reset-then-reuse-values --set dashboard.enabled=true"
    )
