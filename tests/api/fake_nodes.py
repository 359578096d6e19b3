"""Nodes that kwok plays, added while a cluster runs, and taken away again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.api.caller import Caller
from tests.api.conftest import SERVERS, administrator

from cluster import Running

NODES = "/api/v1/nodes"


def node(name: str, product: str, gpus: int, **labels: str) -> dict[str, Any]:
    """A Node with GPUs as GPU feature discovery labels them; `zone` is short for its label."""
    if zone := labels.pop("zone", ""):
        labels["topology.kubernetes.io/zone"] = zone
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.product": product,
                "nvidia.com/gpu.memory": "16384",
                "nvidia.com/gpu.compute.major": "7",
                "nvidia.com/gpu.compute.minor": "5",
                **labels,
            },
        },
        "status": {"capacity": resources, "allocatable": resources},
    }


def add(admin: Caller, *nodes: dict[str, Any]) -> None:
    for each in nodes:
        answer = admin.create(NODES, each)
        assert answer.ok, answer
        status = {"status": each["status"]}  # a creation through the API drops it
        assert admin.patch(f"{NODES}/{each['metadata']['name']}/status", status).ok


def remove(admin: Caller, *names: str) -> None:
    for name in names:
        admin.send("DELETE", f"{NODES}/{name}")


@contextmanager
def with_nodes(admin: Caller, *nodes: dict[str, Any]) -> Iterator[None]:
    """These nodes for as long as it lasts."""
    add(admin, *nodes)
    try:
        yield
    finally:
        remove(admin, *(each["metadata"]["name"] for each in nodes))


@contextmanager
def other_nodes(running: Running, path: Path) -> Iterator[None]:
    """The nodes of a file, and not the cluster's own, for as long as it lasts."""
    _replace(running, path)
    try:
        yield
    finally:
        _replace(running, SERVERS)


def _replace(running: Running, path: Path) -> None:
    admin = administrator(running)
    remove(admin, *(each["metadata"]["name"] for each in admin.get(NODES).body["items"]))
    running.add_nodes(path)
