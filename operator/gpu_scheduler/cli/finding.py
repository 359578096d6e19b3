"""What a word on the command line means: a GPUJob, a pod, or a workload of any kind, and its pods.

A pod belongs to a workload if its owners, or theirs, are that: a Deployment's by a ReplicaSet, a
CronJob's by a Job.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_scheduler.api.names import GROUP, LABEL_JOB, VERSION
from gpu_scheduler.api.unstructured import Body
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.cli.ending import Failed
from gpu_scheduler.cli.job_names import checked_word
from gpu_scheduler.cli.maker import BETWEEN, is_known, of_pod, read_maker
from gpu_scheduler.kube import errors, paths

if TYPE_CHECKING:
    from gpu_scheduler.simulate.verdict import Maker

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


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """What was meant.

    Attributes:
        kind: lower case: "gpujob", "pod", "deployment", ...
        namespace: where it is.
        name: what it is called.
        job: the GPUJob that it is, or belongs to; None: there is none.
        pods: its pods, the oldest first; of a pod that pod.
        between: what a workload makes that makes its pods: ReplicaSets, Jobs.
    """

    kind: str
    namespace: str
    name: str
    job: Body | None
    pods: list[Body]
    between: Sequence[Body] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class NoPodsError(Failed):
    """A workload is there, and has no pods.

    Attributes:
        found: the workload.
        maker: what is known of who makes its pods.
    """

    def __init__(self, found: ResolvedTarget, maker: "Maker") -> None:
        self.found = found
        self.maker = maker
        super().__init__(f"{found} has no pods: {maker.told()}")


def find(cluster: ClusterAccess, word: str) -> ResolvedTarget:
    """The object that a word means: NAME (a GPUJob, or else a pod) or KIND/NAME.

    Raises:
        ValueError: nothing can be called so.
        NoPodsError: it is a workload without pods.
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
        found = _workload(cluster, kind, name)
        if found.pods:
            return found
        maker = maker_of(cluster, found)
        if maker is not None and (maker.refused or is_known(kind)):
            raise NoPodsError(found, maker)
        what = f"no {kind}" if is_known(kind) else f"no {kind} with pods"
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


def maker_of(cluster: ClusterAccess, found: ResolvedTarget) -> "Maker | None":
    """What is known of who makes the pods of a workload; None: there is no such workload.

    Of a pod that nothing else speaks for: what of itself does not count.
    """
    if found.kind == "pod":
        return of_pod(found.pods[0])
    return read_maker(cluster, found.kind, found.name, found.between, found.pods)


def _workload(cluster: ClusterAccess, kind: str, name: str) -> ResolvedTarget:
    owners, between = {(kind, name)}, list[Body]()
    if kind in BETWEEN:
        version, plural = BETWEEN[kind]
        path = f"/apis/{version}/namespaces/{cluster.namespace}/{plural}"
        made = cluster.client.items(path)
        between = _oldest_first(each for each in made if owners.intersection(_owners(each)))
        owners |= {(plural.removesuffix("s"), each["metadata"]["name"]) for each in between}
    pods = cluster.client.items(paths.core("pods", cluster.namespace))
    owned = _oldest_first(pod for pod in pods if owners.intersection(_owners(pod)))
    return ResolvedTarget(kind, cluster.namespace, name, None, owned, between)


def _owners(body: Body) -> Iterator[tuple[str, str]]:
    for owner in body["metadata"].get("ownerReferences") or ():
        yield str(owner["kind"]).lower(), str(owner["name"])


def _oldest_first(pods: Iterable[Body]) -> list[Body]:
    return sorted(
        pods, key=lambda p: (p["metadata"].get("creationTimestamp") or "", p["metadata"]["name"])
    )


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
