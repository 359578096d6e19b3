"""What a word on the command line means: a GPUJob, a pod, or a workload of any kind, and its pods.

A pod belongs to a workload if its owners, or theirs, are that: a Deployment's by a ReplicaSet, a
CronJob's by a Job.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpu_scheduler.api.names import GROUP, LABEL_JOB, VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.job_names import checked_word
from gpu_scheduler.kube import errors, paths

_SHORT = {
    "gpujob": "gpujob",
    "gpujobs": "gpujob",
    "gj": "gpujob",
    "po": "pod",
    "pods": "pod",
    "deploy": "deployment",
    "deployments": "deployment",
    "rs": "replicaset",
    "replicasets": "replicaset",
    "sts": "statefulset",
    "statefulsets": "statefulset",
    "ds": "daemonset",
    "daemonsets": "daemonset",
    "jobs": "job",
    "cj": "cronjob",
    "cronjobs": "cronjob",
}
_BETWEEN = {"deployment": ("apps/v1", "replicasets"), "cronjob": ("batch/v1", "jobs")}


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """What was meant.

    Attributes:
        kind: lower case: "gpujob", "pod", "deployment", ...
        namespace: where it is.
        name: what it is called.
        job: the GPUJob that it is, or belongs to; None: there is none.
        pods: its pods, the oldest first; of a pod that pod.
    """

    kind: str
    namespace: str
    name: str
    job: Body | None
    pods: list[Body]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def find(cluster: ClusterAccess, word: str) -> ResolvedTarget:
    """The object that a word means: NAME (a GPUJob, or else a pod) or KIND/NAME.

    Raises:
        ValueError: nothing can be called so.
        Failed: there is none.
        errors.ApiError: it may not be read.
    """
    kind, name = kind_and_name(word)
    if kind in ("", "gpujob"):
        job = get(cluster, gpujob_path(cluster.namespace, name))
        if job is not None:
            return ResolvedTarget(
                "gpujob", cluster.namespace, name, job, pods_of_job(cluster, name)
            )
    if kind in ("", "pod"):
        pod = get(cluster, paths.pod(cluster.namespace, name))
        if pod is not None:
            owner = (pod["metadata"].get("labels") or {}).get(LABEL_JOB)
            job = get(cluster, gpujob_path(cluster.namespace, owner)) if owner else None
            return ResolvedTarget("pod", cluster.namespace, name, job, [pod])
    what = f"no {kind}" if kind else "neither a GPUJob nor a pod"
    if kind not in ("", "gpujob", "pod"):
        pods = _owned(cluster, kind, name)
        if pods:
            return ResolvedTarget(kind, cluster.namespace, name, None, pods)
        what = f"no {kind} with pods"
    raise Failed(
        f"there is {what} called {name} in namespace {cluster.namespace}; "
        "kubectl gpu list shows what there is, -n NAMESPACE looks elsewhere"
    )


def kind_and_name(word: str) -> tuple[str, str]:
    """The kind, lower case and in full, or empty where it is not said; and the name.

    Raises:
        ValueError: nothing can be called so.
    """
    kind, _, name = checked_word(word).rpartition("/")
    return _SHORT.get(kind.lower(), kind.lower().partition(".")[0]), name


def no_job(cluster: ClusterAccess, name: str) -> Failed:
    """What to say where there is no GPUJob of a name."""
    return Failed(
        f"there is no GPUJob called {name} in namespace {cluster.namespace}; "
        "kubectl gpu list shows what there is"
    )


def gpujob_path(namespace: str = "", name: str = "") -> str:
    """Of a GPUJob, or of all of a namespace, or of the cluster."""
    return paths.of_group(GROUP, VERSION, "gpujobs", namespace, name)


def pods_of_job(cluster: ClusterAccess, name: str) -> list[Body]:
    """The pods of a GPUJob, the oldest first."""
    path = paths.core("pods", cluster.namespace)
    return _oldest_first(cluster.client.items(path, f"{LABEL_JOB}={name}"))


def _owned(cluster: ClusterAccess, kind: str, name: str) -> list[Body]:
    owners = {(kind, name)}
    if kind in _BETWEEN:
        version, plural = _BETWEEN[kind]
        path = f"/apis/{version}/namespaces/{cluster.namespace}/{plural}"
        between = cluster.client.items(path)
        owners |= {
            (plural.removesuffix("s"), each["metadata"]["name"])
            for each in between
            if owners.intersection(_owners(each))
        }
    pods = cluster.client.items(paths.core("pods", cluster.namespace))
    return _oldest_first(pod for pod in pods if owners.intersection(_owners(pod)))


def _owners(body: Body) -> Iterator[tuple[str, str]]:
    for owner in body["metadata"].get("ownerReferences") or ():
        yield str(owner["kind"]).lower(), str(owner["name"])


def _oldest_first(pods: Iterable[Body]) -> list[Body]:
    return sorted(pods, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]))


def get(cluster: ClusterAccess, path: str) -> Body | None:
    """An object; None: there is none of this name.

    Raises:
        errors.ApiError: it may not be read, or the server does not know the kind.
    """
    try:
        return cluster.client.get(path)
    except errors.NotFound as error:
        if not error.details.name:  # the kind is not known
            raise
        return None
