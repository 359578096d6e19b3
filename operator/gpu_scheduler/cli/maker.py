"""What makes the pods of a workload, and why it makes none, or fewer than it should.

A Deployment's ReplicaSet says in a condition that its pods are refused; other controllers say so in
Events alone.
"""

from collections.abc import Iterable, Sequence

from gpu_scheduler.api.share_hints import hints, of_limits
from gpu_scheduler.api.unstructured import Body, listed, name_of, part, text
from gpu_scheduler.cli.cluster_access import ClusterAccess
from gpu_scheduler.kube import errors, paths
from gpu_scheduler.manifests.templates import templates
from gpu_scheduler.simulate.verdict import Maker

BETWEEN = {"deployment": ("apps/v1", "replicasets"), "cronjob": ("batch/v1", "jobs")}
_VERSIONS = {
    "deployment": "apps/v1",
    "replicaset": "apps/v1",
    "statefulset": "apps/v1",
    "daemonset": "apps/v1",
    "job": "batch/v1",
    "cronjob": "batch/v1",
}
_FAILED_CREATE = "FailedCreate"
_MOST_EVENTS = "500"


def is_known(kind: str) -> bool:
    """Whether a workload of the kind can be read."""
    return kind in _VERSIONS


def read_maker(
    cluster: ClusterAccess, kind: str, name: str, between: Sequence[Body], pods: Sequence[Body]
) -> Maker | None:
    """What is known of who makes the pods; None: there is no such workload.

    Args:
        cluster: where it is.
        kind: of the workload, lower case.
        name: what it is called.
        between: what it makes that makes its pods: ReplicaSets, Jobs.
        pods: those that there are.
    """
    own: Body | None = None
    if kind in _VERSIONS:
        path = f"/apis/{_VERSIONS[kind]}/namespaces/{cluster.namespace}/{kind}s/{name}"
        try:
            own = cluster.client.get(path)
        except errors.NotFound:
            return None
        except errors.Forbidden:
            pass  # its Events may be seen all the same
    made = [(kind, name, own), *((_made_by(kind), name_of(each), each) for each in between)]
    failing = [(said, f"{of} {called}") for of, called, it in made if (said := _failure(it))]
    if not failing:
        about = {(of, called) for of, called, _ in made}
        failing = _failed_creates(cluster, about, pods, known=kind in _VERSIONS)
    refused, by = failing[-1] if failing else ("", "")  # who was refused, not who repeats it
    if own is None:
        return Maker(refused, by)
    return Maker(refused, by, _why_none(own, kind), tuple(dict.fromkeys(_hints(own))))


def of_pod(pod: Body) -> Maker:
    """What of a pod does not count."""
    found = (*hints(part(pod, "metadata")), *of_limits(part(pod, "spec")))
    return Maker(hints=tuple(map(str, found)))


def _made_by(kind: str) -> str:
    return BETWEEN[kind][1].removesuffix("s")


def _hints(own: Body) -> Iterable[str]:
    for template in templates(dict(own)):
        found = hints(part(own, "metadata"), template.body, template.field)
        yield from map(str, found)


def _failure(body: Body | None) -> str:
    """What a controller says in its status of pods that it may not make."""
    for each in listed(body or {}, "status", "conditions"):
        if text(each, "type") == "ReplicaFailure" and text(each, "status") == "True":
            return text(each, "message") or text(each, "reason")
    return ""


def _failed_creates(
    cluster: ClusterAccess, about: set[tuple[str, str]], pods: Sequence[Body], *, known: bool
) -> list[tuple[str, str]]:
    """The newest Event that says that a pod was refused, unless a pod was made since.

    ``known``: the controller is Kubernetes' own, and its reason is known.
    """
    fields = f"type=Warning,reason={_FAILED_CREATE}" if known else "type=Warning"
    path = paths.core("events", cluster.namespace)
    try:
        answer = cluster.client.get(path, fieldSelector=fields, limit=_MOST_EVENTS)
    except errors.Forbidden:
        return []
    newest = max((text(pod, "metadata", "creationTimestamp") for pod in pods), default="")
    found = []
    for each in listed(answer, "items"):
        subject = part(each, "involvedObject")
        kind, name = text(subject, "kind").lower(), text(subject, "name")
        told = text(each, "reason") == _FAILED_CREATE or not known
        if told and (kind, name) in about and _moment(each) > newest:
            found.append((_moment(each), text(each, "message"), f"{kind} {name}"))
    return [(message, by) for _, message, by in [max(found)]] if found else []


def _moment(event: Body) -> str:
    """When it was last seen, RFC 3339."""
    return (
        text(event, "series", "lastObservedTime")
        or text(event, "lastTimestamp")
        or text(event, "eventTime")
        or text(event, "metadata", "creationTimestamp")
    )


def _why_none(own: Body, kind: str) -> str:
    spec = part(own, "spec")
    for field in ("replicas", "parallelism"):
        if spec.get(field) == 0:
            return f"spec.{field} is 0, so it has no pods"
    if spec.get("suspend") is True:
        return "spec.suspend is true, so it has no pods"
    if kind == "cronjob":
        return "none of its Jobs has pods at present"
    return "its controller has made no pod of it yet"
