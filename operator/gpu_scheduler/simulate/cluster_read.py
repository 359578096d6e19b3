"""Reads a cluster: lists what a plan depends on, and writes nothing.

The operator reads the same collections by watching them. Needs ``get`` and ``list`` on them in all
namespaces; what may not be read is told by name, but for DeviceClasses, without which only what
their drivers give seems to be nowhere. PodGroups are asked for where a pod names one, as the
operator does.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpu_scheduler.api.names import GROUP, LABEL_JOB, VERSION
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.command_client import CommandClient
from gpu_scheduler.kube.paths import DEVICE_CLASSES, JOBS, NODES, POD_GROUPS, PODS, of_group
from gpu_scheduler.simulate.cluster_objects import Objects

_COLLECTIONS = {
    "GPUProject": of_group(GROUP, VERSION, "gpuprojects"),
    "GPUJob": of_group(GROUP, VERSION, "gpujobs"),
    "GPUNode": of_group(GROUP, VERSION, "gpunodes"),
    "GPUClass": of_group(GROUP, VERSION, "gpuclasses"),
    "DeviceClass": DEVICE_CLASSES,
    "Node": NODES,
    "Job": JOBS,
    "Pod": PODS,
}
_SELECTORS = {"Job": LABEL_JOB}
_OPTIONAL = {"GPUNode", "GPUClass", "DeviceClass"}  # an older installation may not have them
_UNTOLD = {"DeviceClass"}  # older roles do not have them
_NEEDS = (
    "the planner needs get and list on GPUJobs, GPUProjects, GPUNodes, Nodes, Jobs, Pods and, "
    "where a pod names one, PodGroups of the whole cluster"
)


def read(client: CommandClient) -> Objects:
    """Everything that a plan depends on.

    Raises:
        errors.ApiError: the cluster does not answer, or does not let us read something.
    """
    found = Objects()
    with ThreadPoolExecutor(len(_COLLECTIONS)) as pool:
        lists = {kind: pool.submit(_list, client, kind) for kind in _COLLECTIONS}
        # Who reads a cluster plans next; the planner is imported while the server is at work.
        from gpu_scheduler.simulate import cluster_cycles as _  # noqa: F401

        for kind, bodies in lists.items():
            _put(found, kind, bodies.result())
    if any("schedulingGroup" in (pod.get("spec") or {}) for pod in found.of("Pod")):
        _put(found, "PodGroup", _pod_groups(client))
    return found


def _put(found: Objects, kind: str, bodies: list[dict[str, Any]]) -> None:
    for body in bodies:
        body["metadata"].pop("managedFields", None)  # a third of it, and read by nobody
        found.put(kind, body)


def _list(client: CommandClient, kind: str) -> list[dict[str, Any]]:
    try:
        return _items(client, _COLLECTIONS[kind], _SELECTORS.get(kind, ""))
    except errors.NotFound:
        if kind not in _OPTIONAL:
            raise
        return []
    except errors.Forbidden:
        if kind not in _UNTOLD:
            raise
        return []


def _pod_groups(client: CommandClient) -> list[dict[str, Any]]:
    """Those of the version in which the API server has them."""
    for path in POD_GROUPS.values():
        try:
            return _items(client, path)
        except errors.NotFound:
            continue
    return []


def _items(client: CommandClient, path: str, selector: str = "") -> list[dict[str, Any]]:
    try:
        return list(client.items(path, selector))
    except errors.Forbidden as error:
        error.message = f"{error.message}; {_NEEDS}"
        raise
