"""The operator's replicas: who leads, and what the leader counts."""

import json
from typing import Any

from tests.api.tenant import until

from cluster import Running
from demo.install import RELEASE


def replicas(cluster: Running) -> list[dict[str, Any]]:
    """The operator's pods that are not on their way out."""
    answer = cluster.kubectl(
        "get", "pods", "-n", RELEASE, "-l", f"app.kubernetes.io/name={RELEASE}", "-o", "json"
    )
    pods: list[dict[str, Any]] = json.loads(answer.stdout)["items"]
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def leader(cluster: Running) -> str:
    """The pod whose name is in the Lease, and which says so itself; '' while there is none."""
    names = [
        pod["metadata"]["name"]
        for pod in replicas(cluster)
        if "leader" in _admin(cluster, pod["metadata"]["name"], "healthz")
    ]
    assert len(names) <= 1, f"two leaders: {names}"
    return names[0] if names and holder(cluster).startswith(names[0]) else ""


def holder(cluster: Running) -> str:
    """Who the Lease names: a process of a replica."""
    return cluster.kubectl(
        "get", "lease", "gpu-scheduler-leader", "-n", RELEASE,
        "-o", "jsonpath={.spec.holderIdentity}",
    ).stdout  # fmt: skip


def wait_leader(cluster: Running) -> str:
    """Until a replica leads; its pod's name."""
    name: str = until(lambda: leader(cluster), "a replica leads", 60)
    return name


def leaders_metric(cluster: Running, name: str) -> float:
    """A metric without labels, of the replica that leads."""
    text = _admin(cluster, wait_leader(cluster), "metrics")
    return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))


def _admin(cluster: Running, pod: str, path: str) -> str:
    where = f"/api/v1/namespaces/{RELEASE}/pods/{pod}:8080/proxy/{path}"
    return cluster.kubectl("get", "--raw", where, check=False).stdout
