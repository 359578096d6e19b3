"""The operator's replicas: who leads, and what the leader counts."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.waits import until

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
    """The pod whose name is in the Lease, and which alone says so itself; '' while there is none.

    One that has given the Lease back says that it leads until it has ended.
    """
    names = _leading(cluster)
    return names[0] if len(names) == 1 and holder(cluster).startswith(names[0]) else ""


def _leading(cluster: Running) -> list[str]:
    names = [pod["metadata"]["name"] for pod in replicas(cluster)]
    return [pod for pod in names if "leader" in _admin(cluster, pod, "healthz")]


def holder(cluster: Running) -> str:
    """Who the Lease names: a process of a replica."""
    return cluster.kubectl(
        "get", "lease", "gpu-scheduler-leader", "-n", RELEASE,
        "-o", "jsonpath={.spec.holderIdentity}",
    ).stdout  # fmt: skip


def wait_leader(cluster: Running) -> str:
    """Until a replica leads; its pod's name."""
    name: str = until(
        lambda: leader(cluster),
        lambda: f"one replica leads: {_leading(cluster)} say so, {holder(cluster)} has the Lease",
    )
    return name


def end_term(cluster: Running) -> None:
    """Let the Lease of a leader that is gone, and could not give it back, run out at once."""
    gone = json.dumps({"spec": {"holderIdentity": ""}})
    where = ("lease", "gpu-scheduler-leader", "-n", RELEASE, "--type=merge", f"--patch={gone}")
    cluster.kubectl("patch", *where, check=False)  # there may be none


def runs(pod_uid: str) -> bool:
    """Whether the node has a process of this pod."""
    for cgroup in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if f"pod{pod_uid}" in cgroup.read_text():
                return True
        except OSError:
            continue  # it has just ended
    return False


def leaders_metric(cluster: Running, name: str) -> float:
    """A metric without labels, of the replica that leads."""

    def found() -> list[float]:
        lines = _admin(cluster, wait_leader(cluster), "metrics").splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith(f"{name} ")]

    (value,) = until(found, f"the leader counts {name}")
    return float(value)


def _admin(cluster: Running, pod: str, path: str) -> str:
    where = f"/api/v1/namespaces/{RELEASE}/pods/{pod}:8080/proxy/{path}"
    return cluster.kubectl("get", "--raw", where, check=False).stdout
