"""What ``kubectl gpu`` and the API server say of a cluster, to compare the dashboard with.

Nothing here shares code with the dashboard. ``versions`` tells whether two looks saw the same.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from tests.api.caller import Caller
from tests.api.replica import LEASE
from tests.api.tenant import GROUP, Json
from tests.api.usage_agent import UsageAgent

Key = tuple[str, str, str]
"""Namespace, kind and name."""
Gpu = Callable[..., Any]
"""What ``kubectl gpu WORDS -o json`` prints."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits, and what it asks for with all its pods that do."""

    key: Key
    project: str
    reason: str
    position: int
    pods: int
    gpus: float
    since: float


class ClusterAtRest:
    """One look at a cluster at rest."""

    def __init__(self, admin: Caller, gpu: Gpu, agent: UsageAgent) -> None:
        self.agent = agent
        self.gpu = gpu

        def items(path: str) -> list[Json]:
            body = admin.get(path).body
            self.versions.append(str(max((_version(each) for each in body["items"]), default=0)))
            return list(body["items"])

        self.versions: list[str] = []
        self.jobs = {_key(each, "GPUJob"): each for each in items(f"{GROUP}/gpujobs")}
        self.projects = {each["metadata"]["name"]: each for each in items(f"{GROUP}/gpuprojects")}
        self.pods = {
            (each["metadata"]["namespace"], each["metadata"]["name"]): each
            for each in items("/api/v1/pods")
        }
        self.nodes = {
            each["metadata"]["name"]: each for each in admin.get("/api/v1/nodes").body["items"]
        }
        self.usages = admin.get(f"{GROUP}/gpuusages").body["items"]
        self.devices = {
            (each["node"], each["device"]): each for each in gpu("top", "gpus")["devices"]
        }
        self.top_nodes = {each["node"]: each for each in gpu("top", "nodes")["nodes"]}
        self.top_jobs = {
            (row["namespace"], self._kind(row), row["name"]): row
            for row in gpu("top", "jobs")["jobs"]
        }
        advised = {
            key: [each["rule"] for each in row["use"]["advice"]]
            for key, row in self.top_jobs.items()
            if row["use"]
        }
        self.versions.append(str(sorted(advised.items())))  # no object's version tells of it
        self.used = gpu("top", "projects")["used"]
        self.idle = {
            (each["namespace"], each["kind"], each["name"]): each
            for each in gpu("idle", "-A")["idleNow"]
        }
        self.led_since = seconds(admin.get(LEASE).body["spec"]["acquireTime"])
        self.at = time.time()
        """When it had been read."""

    def _kind(self, row: Json) -> str:
        if row["use"]:
            return str(row["use"]["kind"])
        pod = self.pods[row["namespace"], row["pods"][0]]
        return owner_of(pod)[0]

    def of_owner(self, key: Key) -> list[Json]:
        """The pods of a workload that have not ended."""
        namespace, kind, name = key
        return [
            pod
            for (where, _), pod in self.pods.items()
            if where == namespace and owner_of(pod) == (kind, name) and not ended(pod)
        ]

    def use(self, key: Key) -> Json:
        """What is recorded of a workload's use; empty: nothing."""
        row = self.top_jobs.get(key)
        return (row or {}).get("use") or {}

    def project_of(self, namespace: str) -> str:
        """By the projects' own words."""
        return next(n for n, p in self.projects.items() if namespace in p["spec"]["namespaces"])

    @cached_property
    def waiting(self) -> list[Waiting]:
        """All that waits."""
        found = [self._job(key, job) for key, job in self.jobs.items() if _waits(job)]
        owners: dict[Key, list[Json]] = {}
        for (namespace, _), pod in self.pods.items():
            kind, name = owner_of(pod)
            if kind != "GPUJob" and asks(pod) and not pod["spec"].get("nodeName"):
                owners.setdefault((namespace, kind, name), []).append(pod)
        for key, pods in owners.items():
            why = self.gpu("why", f"{key[1].lower()}/{key[2]}", "-n", key[0])
            since = min(seconds(pod["metadata"]["creationTimestamp"]) for pod in pods)
            found.append(
                Waiting(
                    key,
                    self.project_of(key[0]),
                    why["verdict"]["reason"],
                    0,
                    len(pods),
                    sum(asks(pod) for pod in pods),
                    since,
                )
            )
        return found

    def _job(self, key: Key, job: Json) -> Waiting:
        status = job["status"]
        pods = status["pods"].get("pending") or _whole(job)
        placed = condition(job, "Placed")
        since = placed["lastTransitionTime"] if placed.get("status") == "False" else ""
        return Waiting(
            key,
            self.project_of(key[0]),
            status["reason"],
            status.get("queuePosition", 0),
            pods,
            float(job["spec"]["gpu"]) * pods,
            seconds(since or job["metadata"]["creationTimestamp"]),
        )


def _waits(job: Json) -> bool:
    status = job["status"]
    if status["phase"] == "Running":
        return bool(status.get("queuePosition") and status["pods"].get("pending"))
    return bool(status["phase"] == "Pending")


def _whole(job: Json) -> int:
    """Pods in all, as the column PODS says."""
    return int(job["status"]["podSummary"].split("/")[2])


def _version(body: Json) -> int:
    return int(body["metadata"]["resourceVersion"])


def _key(body: Json, kind: str) -> Key:
    return body["metadata"]["namespace"], kind, body["metadata"]["name"]


def seconds(text: str | None) -> float:
    """Since the epoch."""
    assert text
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def condition(body: Json, kind: str) -> Json:
    """One of its conditions, or nothing."""
    found = body.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == kind), {})


def ended(pod: Json) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def owner_of(pod: Json) -> tuple[str, str]:
    """Kind and name of what people made."""
    meta = pod["metadata"]
    if job := meta.get("labels", {}).get("gpu-scheduler.io/job"):
        return "GPUJob", job
    owner = next((o for o in meta.get("ownerReferences", ()) if o.get("controller")), None)
    if owner is None:
        return "Pod", meta["name"]
    if owner["kind"] == "ReplicaSet":
        return "Deployment", owner["name"].rpartition("-")[0]
    return owner["kind"], owner["name"]


def asks(pod: Json) -> float:
    """GPUs that a pod asks for by itself; 0: none."""
    return float(pod["metadata"].get("annotations", {}).get("gpu-scheduler.io/gpu", 0))


def cpu(quantity: str) -> float:
    """Cores."""
    return float(quantity[:-1]) / 1000 if quantity.endswith("m") else float(quantity)


def requests(pod: Json) -> Iterator[Json]:
    """Of its containers."""
    for container in pod["spec"]["containers"]:
        yield container.get("resources", {}).get("requests", {})
