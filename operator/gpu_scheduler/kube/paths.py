"""Paths of the API server's resources, so that no caller spells one by hand.

Without a namespace a path means all namespaces; names come from the API server and are DNS names,
which need no quoting.
"""

PODS = "/api/v1/pods"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
RESOURCE_QUOTAS = "/api/v1/resourcequotas"
JOBS = "/apis/batch/v1/jobs"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def core(plural: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """A resource of the core group (v1)."""
    return _path("/api/v1", plural, namespace, name, subresource)


def of_group(
    group: str,
    version: str,
    plural: str,
    namespace: str = "",
    name: str = "",
    subresource: str = "",
) -> str:
    """A resource of a named group, custom resources among them."""
    return _path(f"/apis/{group}/{version}", plural, namespace, name, subresource)


def pod(namespace: str, name: str, subresource: str = "") -> str:
    """A pod, or its ``binding``, ``eviction`` or ``status``."""
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    return f"{path}/{subresource}" if subresource else path


def job(namespace: str, name: str = "", subresource: str = "") -> str:
    """A batch/v1 Job, or all of a namespace."""
    return _path("/apis/batch/v1", "jobs", namespace, name, subresource)


def lease(namespace: str, name: str = "") -> str:
    """A Lease, or all of a namespace."""
    return _path("/apis/coordination.k8s.io/v1", "leases", namespace, name, "")


def _path(root: str, plural: str, namespace: str, name: str, subresource: str) -> str:
    parts = [root]
    if namespace:
        parts.append(f"namespaces/{namespace}")
    parts += [part for part in (plural, name, subresource) if part]
    return "/".join(parts)


# By the version in which an API server may serve them, the newest first.
POD_GROUPS = {
    version: of_group("scheduling.k8s.io", version, "podgroups")
    for version in ("v1", "v1beta1", "v1alpha3", "v1alpha2")
}
