"""Reads a cluster: lists what a plan depends on, and writes nothing.

The operator reads the same collections by watching them. Needs ``get`` and ``list`` on them in all
namespaces; what may not be read is told by name. Called by ``cluster_command``.
"""

from gpu_scheduler.api.names import GROUP, LABEL_JOB, VERSION
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.listing import list_all
from gpu_scheduler.kube.paths import JOBS, NODES, PODS, of_group
from gpu_scheduler.simulate.cluster_objects import Objects, SimulationError

_COLLECTIONS = {
    "GPUProject": of_group(GROUP, VERSION, "gpuprojects"),
    "GPUJob": of_group(GROUP, VERSION, "gpujobs"),
    "GPUNode": of_group(GROUP, VERSION, "gpunodes"),
    "GPUClass": of_group(GROUP, VERSION, "gpuclasses"),
    "Node": NODES,
    "Job": JOBS,
    "Pod": PODS,
}
_SELECTORS = {"Job": LABEL_JOB}
_OPTIONAL = {"GPUNode", "GPUClass"}  # an older installation may not have them


async def read(client: Client) -> Objects:
    """Everything that a plan depends on.

    Raises:
        SimulationError: the cluster does not answer, or does not let us read something.
    """
    found = Objects()
    for kind, path in _COLLECTIONS.items():
        try:
            for body in await list_all(client, path, selector=_SELECTORS.get(kind, "")):
                found.put(kind, body)
        except errors.NotFound:
            if kind not in _OPTIONAL:
                raise SimulationError(
                    f"{client.connection.server} has no {kind}s: the scheduler's CRDs are not "
                    "installed there; choose another cluster with kubectl config use-context"
                ) from None
        except errors.ApiError as error:
            raise SimulationError(_plainly(kind, client.connection.server, error)) from None
    return found


def _plainly(kind: str, server: str, error: errors.ApiError) -> str:
    if isinstance(error, errors.Forbidden):
        return (
            f"{server}: may not list {kind}s of the whole cluster ({error.message}); a simulation "
            "needs get and list on GPUJobs, GPUProjects, GPUNodes, Nodes, Jobs and Pods"
        )
    if isinstance(error, errors.Unauthorized):
        return f"{server} does not accept the credentials of the kubeconfig; log in again"
    if isinstance(error, errors.Unavailable):
        return f"{server} does not answer: {error.message}"
    return f"{server}: listing {kind}s: {error}"
