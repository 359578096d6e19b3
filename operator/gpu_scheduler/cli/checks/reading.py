"""Reads what the checks need; what may not be read is None, and no reason to stop."""

from datetime import UTC, datetime

from gpu_scheduler import __version__
from gpu_scheduler.api.crd import KINDS
from gpu_scheduler.api.names import GROUP, VERSION
from gpu_scheduler.api.unstructured import listed, name_of, part
from gpu_scheduler.cli.checks.facts import PART_OF, CheckInputs, Read
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.kube import errors, paths

_OURS = f"{PART_OF}=gpu-scheduler"
_ADMISSION = ("admissionregistration.k8s.io", "v1")


def read(cluster: ClusterAccess, namespace: str | None) -> CheckInputs:
    """Everything, of an operator in this namespace; None: where the chart's Deployment is.

    Raises:
        errors.ApiError: the cluster does not answer, or does not take who asks.
    """
    kinds = _served(cluster, GROUP, VERSION)
    admission = _served(cluster, *_ADMISSION) or frozenset()
    deployments = _ours(cluster, "deployments", namespace)
    daemonsets = _ours(cluster, "daemonsets", namespace)
    found = next(iter([*(deployments or ()), *(daemonsets or ())]), None)
    where = namespace or str(part(found or {}, "metadata").get("namespace") or "gpu-scheduler")

    def own(plural: str) -> Read:
        known = kinds is not None and plural in kinds
        return _all(cluster, paths.of_group(GROUP, VERSION, plural)) if known else ()

    def policies(plural: str) -> Read:
        if plural not in admission:
            return ()
        return _all(cluster, paths.of_group(*_ADMISSION, plural), _OURS)

    return CheckInputs(
        namespace=where,
        version=__version__,
        now=datetime.now(UTC),
        kinds=kinds,
        admission=admission,
        crds=_crds(cluster),
        deployments=deployments,
        daemonsets=daemonsets,
        leases=_all(cluster, paths.lease(where)),
        nodes=_all(cluster, paths.NODES),
        gpunodes=own("gpunodes"),
        projects=own("gpuprojects"),
        namespaces=_all(cluster, paths.NAMESPACES),
        runtime_classes=_all(cluster, paths.of_group("node.k8s.io", "v1", "runtimeclasses")),
        validating=policies("validatingadmissionpolicies"),
        validating_bindings=policies("validatingadmissionpolicybindings"),
        mutating=policies("mutatingadmissionpolicies"),
        mutating_bindings=policies("mutatingadmissionpolicybindings"),
        quotas=_all(cluster, paths.RESOURCE_QUOTAS),
        pods=_all(cluster, paths.PODS),
    )


def _ours(cluster: ClusterAccess, plural: str, namespace: str | None) -> Read:
    if namespace is None:
        found = _all(cluster, paths.of_group("apps", "v1", plural), _OURS)
        if found is not None:
            return found
    return _all(cluster, paths.of_group("apps", "v1", plural, namespace or "gpu-scheduler"), _OURS)


def _crds(cluster: ClusterAccess) -> Read:
    found = []
    for kind in KINDS:
        name = f"{kind.plural}.{GROUP}"
        path = paths.of_group("apiextensions.k8s.io", "v1", "customresourcedefinitions", "", name)
        try:
            found.append(cluster.client.get(path))
        except errors.NotFound:
            continue
        except errors.Forbidden:
            return None
    return found


def _served(cluster: ClusterAccess, group: str, version: str) -> frozenset[str] | None:
    try:
        answer = cluster.client.get(f"/apis/{group}/{version}")
    except errors.NotFound:
        return None
    except errors.Forbidden:
        return frozenset()
    names = (each.get("name", "") for each in listed(answer, "resources"))
    return frozenset(str(name) for name in names if "/" not in str(name))


def _all(cluster: ClusterAccess, path: str, selector: str = "") -> Read:
    try:
        return sorted(cluster.client.items(path, selector), key=name_of)
    except errors.Forbidden:
        return None
    except errors.NotFound:
        return ()
