"""What a pod names that the operator may read, and what of it is not there: ADR 0064.

Claims and their storage classes, and resource claims: without them kube-scheduler never binds the
pod. What the API server itself looks at when a pod is made (accounts, classes of priority and of
runtimes, quotas, policies) its dry run says. Secrets and the keys of ConfigMaps are read by nobody
here. What may not be read is not missing.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from gpu_scheduler.jobs.write_path import claims
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.client import Client
from gpu_scheduler.kube.paths import core, of_group

Json = Mapping[str, Any]

_MOST = 16  # of each kind that one pod names; what is beyond is left to kube-scheduler
_LATER = "WaitForFirstConsumer"
_CLAIMS = (
    ("resourceClaimName", "resourceclaims", "resource claim"),
    ("resourceClaimTemplateName", "resourceclaimtemplates", "resource claim template"),
)


async def missing(client: Client, namespace: str, pod_spec: Json) -> str:
    """The first thing that keeps a pod from being bound, as a sentence; empty: nothing is known.

    Args:
        client: asks the API server.
        namespace: of the pod.
        pod_spec: its spec, or that of its template, as JSON.

    Raises:
        ApiError: the API server could not be asked.
    """
    for name in islice(claims(pod_spec), _MOST):
        if found := await unusable(client, namespace, name):
            return found
    for volume, name in islice(_provisioned(pod_spec), _MOST):
        if await _there(client, _class(name)) is None:
            return f"volume {volume}: there is no StorageClass {name}"
    for plural, kind, name in islice(_resource_claims(pod_spec), _MOST):
        path = of_group("resource.k8s.io", "v1", plural, namespace, name)
        if await _there(client, path) is None:
            return f"there is no {kind} {name} in namespace {namespace}"
    return ""


async def unusable(client: Client, namespace: str, name: str) -> str:
    """Why a claim cannot be used, if it is known that it cannot; empty: it may be.

    Raises:
        ApiError: the API server could not be asked.
    """
    claim = await _there(client, core("persistentvolumeclaims", namespace, name))
    about = f"PersistentVolumeClaim {name} of namespace {namespace}"
    if claim is None:
        return f"there is no {about}"
    phase = (claim.get("status") or {}).get("phase")
    if claim.get("metadata", {}).get("deletionTimestamp"):
        return f"{about} is being deleted"
    if phase == "Lost":
        return f"{about} has lost its volume"
    if phase != "Pending":
        return ""
    spec = claim.get("spec") or {}
    storage_class = spec.get("storageClassName")
    if not storage_class:
        return "" if spec.get("volumeName") else f"{about} is not bound, and names no StorageClass"
    found = await _there(client, _class(storage_class))
    if found is None:
        return f"{about} is not bound, and there is no StorageClass {storage_class}"
    return "" if found.get("volumeBindingMode", _LATER) == _LATER else f"{about} is not bound yet"


def _class(name: str) -> str:
    return of_group("storage.k8s.io", "v1", "storageclasses", name=name)


async def _there(client: Client, path: str) -> Json | None:
    """An object; None where there is none, and empty where that cannot be told."""
    try:
        found: Json = await client.get(path)
    except errors.NotFound as error:
        # Of a kind that is not served, the answer names no object.
        return None if error.details.name == path.rpartition("/")[2] else {}
    except errors.Refused:
        return {}
    return found


def _provisioned(pod_spec: Json) -> Iterator[tuple[str, str]]:
    """Volumes that are made for the pod alone, and their storage classes, where they name one."""
    for volume in pod_spec.get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
        name = (template.get("spec") or {}).get("storageClassName")
        if name and isinstance(name, str):
            yield str(volume.get("name")), name


def _resource_claims(pod_spec: Json) -> Iterator[tuple[str, str, str]]:
    for each in pod_spec.get("resourceClaims") or ():
        for field, plural, kind in _CLAIMS:
            name = each.get(field)
            if name and isinstance(name, str):
                yield plural, kind, name
