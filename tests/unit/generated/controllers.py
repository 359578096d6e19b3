"""What Kubernetes does beside the scheduler: controllers of Jobs and ReplicaSets, and kubelets.

Each round looks at everything, as level-triggered controllers do; rounds are small.
"""

from collections.abc import Callable
from typing import Any

from tests.unit.generated.server import ENDED, REPLICA_SETS, Server, path_of
from tests.unit.generated.values import Obj

INDEX = "batch.kubernetes.io/job-completion-index"
MOST_PODS = 8  # of one Job at once: a hostile one may ask for millions


def round_of(
    server: Server,
    *,
    makes: Callable[[Obj], bool] = lambda job: True,
    node: Callable[[Server, Obj], None] | None = None,
) -> None:
    """One round of all of them; ``makes``: whether a Job gets its pods, ``node``: the kubelets."""
    pods = server.of("/api/v1/pods")
    for job in server.of("/apis/batch/v1/jobs"):
        if job["metadata"]["uid"].startswith("uid-made-") and makes(job):
            _job(server, job, [p for p in pods if owner(p) == job["metadata"]["uid"]])
    for replicas in server.of(REPLICA_SETS):
        mine = [pod for pod in pods if owner(pod) == replicas["metadata"]["uid"]]
        live = [pod for pod in mine if pod["status"]["phase"] not in ENDED]
        _replica_set(server, replicas, live)
    for pod in server.of("/api/v1/pods"):
        (node or kubelet)(server, pod)


def finish(server: Server, pod: Obj) -> None:
    """A pod's program ends well."""
    meta = pod["metadata"]
    path = path_of(("/api/v1/pods", meta["namespace"], meta["name"]))
    server.put(path, {**pod, "status": {**pod["status"], "phase": "Succeeded"}})


def owner(pod: Obj) -> str:
    """The uid of a pod's first owner; empty = it has none."""
    owners = pod["metadata"].get("ownerReferences")
    first = owners[0] if isinstance(owners, list) and owners else None
    return str(first.get("uid")) if isinstance(first, dict) else ""


def _job(server: Server, job: Obj, pods: list[Obj]) -> None:
    spec, meta = job["spec"], job["metadata"]
    status: Obj = dict(job.get("status") or {})
    done = {_index(p) for p in pods if p["status"]["phase"] == "Succeeded"}
    active = {_index(p) for p in pods if p["status"]["phase"] not in ENDED}
    completions, parallelism = spec.get("completions") or 0, spec.get("parallelism") or 0
    path = path_of(("/apis/batch/v1/jobs", meta["namespace"], meta["name"]))
    seen = {
        **status,
        "active": len(active),
        "ready": sum(1 for p in pods if p["status"]["phase"] == "Running"),
        "succeeded": len(done),
        "completedIndexes": ",".join(map(str, sorted(done))),
    }
    if completions and len(done) >= completions:
        seen["conditions"] = [
            {"type": "Complete", "status": "True", "lastTransitionTime": server.now()}
        ]
    if seen != status:
        server.put(path, {**job, "status": seen})
    if spec.get("suspend"):
        for pod in pods:
            if pod["status"]["phase"] not in ENDED:
                server.remove(path_of(("/api/v1/pods", meta["namespace"], pod["metadata"]["name"])))
        return
    _narrow(server, [pod for pod in pods if pod["status"]["phase"] not in ENDED], parallelism)
    missing = (i for i in range(min(completions, 100)) if i not in done | active)
    for index in list(missing)[: max(0, min(parallelism, MOST_PODS) - len(active))]:
        _create(server, job, "Job", f"{index}-", {INDEX: str(index)})


def _replica_set(server: Server, replicas: Obj, pods: list[Obj]) -> None:
    wanted = int(replicas["spec"]["replicas"])
    _narrow(server, pods, wanted)
    for _ in range(wanted - len(pods)):
        _create(server, replicas, "ReplicaSet", "", {})


def _narrow(server: Server, live: list[Obj], most: int) -> None:
    """Delete what is too many; those without a node go first."""
    order = sorted(live, key=lambda pod: bool(pod["spec"].get("nodeName")))
    for pod in order[: max(0, len(live) - most)]:
        meta = pod["metadata"]
        server.remove(path_of(("/api/v1/pods", meta["namespace"], meta["name"])))


def _index(pod: Obj) -> int:
    return int(pod["metadata"]["annotations"][INDEX])


def _create(server: Server, of: Obj, kind: str, name: str, annotations: dict[str, str]) -> None:
    meta, template = of["metadata"], of["spec"]["template"]
    about = template.get("metadata") or {}
    made: dict[str, Any] = {
        "metadata": {
            **about,
            "annotations": {**(about.get("annotations") or {}), **annotations},
            "name": f"{meta['name']}-{name}{server.next_uid()}",
            "ownerReferences": [
                {"kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}
            ],
        },
        "spec": template["spec"],
        "status": {"phase": "Pending"},
    }
    server.make("/api/v1/pods", meta["namespace"], made)


def kubelet(server: Server, pod: Obj) -> None:
    """A pod that has a node starts, and is ready."""
    meta = pod["metadata"]
    if not meta["uid"].startswith("uid-made-"):
        return
    if pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
        path = path_of(("/api/v1/pods", meta["namespace"], meta["name"]))
        ready = {"type": "Ready", "status": "True"}
        started = {
            "phase": "Running",
            "startTime": server.now_on(pod["spec"]["nodeName"]),
            "conditions": [*(pod["status"].get("conditions") or ()), ready],
        }
        server.put(path, {**pod, "status": started})
