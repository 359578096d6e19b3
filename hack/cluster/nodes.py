"""Fake nodes: read from files, generated for benchmarks, completed to what a kubelet posts.

A fake node carries the annotation by which kwok plays it and the labels of GPU feature
discovery, from which the operator derives its devices. Everything here is pure but
`read`.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import yaml

from cluster.api_client import Object
from cluster.errors import ClusterError
from cluster.programs import KUBERNETES_VERSION

FAKE = {"kwok.x-k8s.io/node": "fake"}
# Total memory in MiB by product, as GPU feature discovery labels it.
MEMORY_MIB = {
    "NVIDIA-A100-PCIE-40GB": 40960,
    "NVIDIA-A100-SXM4-80GB": 81920,
    "NVIDIA-A30": 24576,
    "NVIDIA-H100-80GB-HBM3": 81559,
    "Tesla-T4": 15360,
}
_READY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


_UNKNOWN = ("bootID", "kernelVersion", "kubeProxyVersion", "machineID", "osImage", "systemUUID")
_NODE_INFO = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    "containerRuntimeVersion": "kwok",
}
_NODE_INFO |= dict.fromkeys(_UNKNOWN, "")


def read(path: Path) -> list[Object]:
    """The Node objects of a YAML file of one or more documents.

    Raises:
        ClusterError: the file holds something else.
    """
    try:
        documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    except (OSError, yaml.YAMLError) as error:
        raise ClusterError(f"{path}: {error}") from error
    for number, document in enumerate(documents):
        if not isinstance(document, dict) or document.get("kind") != "Node":
            raise ClusterError(f"{path}: document {number}: expected an object of kind Node")
    return documents


def fake_nodes(
    count: int,
    *,
    gpus: int = 8,
    model: str = "NVIDIA-A100-SXM4-80GB",
    memory_mib: int | None = None,
    cpu: str = "128",
    memory: str = "1024Gi",
    pods: int = 250,
    prefix: str = "gpu",
) -> list[Object]:
    """Generates `count` equal nodes.

    Args:
        count: how many; they are called `{prefix}-0000`, `{prefix}-0001`, …
        gpus: devices per node; 0 makes nodes without a GPU.
        model: product name, as GPU feature discovery writes it.
        memory_mib: memory per device; by default what `model` has.
        cpu: processors of a node, as a Kubernetes quantity.
        memory: main memory of a node, as a Kubernetes quantity.
        pods: pod slots of a node.
        prefix: beginning of the names.

    Raises:
        ClusterError: the memory of `model` is not known here and was not given.
    """
    if memory_mib is None and gpus:
        if model not in MEMORY_MIB:
            raise ClusterError(f"model {model!r}: give memory_mib, it is not one of {MEMORY_MIB}")
        memory_mib = MEMORY_MIB[model]
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.product": model,
        "nvidia.com/gpu.memory": str(memory_mib),
    }
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "800Gi"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"{prefix}-{number:04d}",
                "annotations": FAKE,
                "labels": labels if gpus else {},
            },
            "status": {"capacity": resources, "allocatable": resources},
        }
        for number in range(count)
    ]


def complete(node: Mapping[str, object], *, now: str) -> Object:
    """`node` as a kubelet would have registered it, Ready, at the time `now` (RFC 3339)."""
    metadata = cast(Mapping[str, object], node.get("metadata") or {})
    name = str(metadata.get("name", ""))
    if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", name):
        raise ClusterError(f"metadata.name {name!r} is not a name for a Node")
    status = cast(Mapping[str, object], node.get("status") or {})
    capacity = status.get("capacity") or status.get("allocatable")
    if not capacity:
        raise ClusterError(f"Node {name}: status.capacity is missing")
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **cast(Mapping[str, str], metadata.get("labels") or {}),
    }
    annotations = {**cast(Mapping[str, str], metadata.get("annotations") or {}), **FAKE}
    return {
        **node,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
        "status": {
            "capacity": capacity,
            "allocatable": status.get("allocatable") or capacity,
            "addresses": [{"type": "Hostname", "address": name}],
            "conditions": _conditions(now),
            "nodeInfo": {**_NODE_INFO, "kubeletVersion": f"v{KUBERNETES_VERSION}"},
            **{k: v for k, v in status.items() if k not in ("capacity", "allocatable")},
        },
    }


def name_of(node: Object) -> str:
    """A Node's name."""
    return cast(Mapping[str, str], node["metadata"])["name"]


def not_schedulable(nodes: Iterable[Object], wanted: Iterable[str]) -> set[str]:
    """Those of the names `wanted` that `nodes` does not show as free of not-ready taints."""
    good = set()
    for node in nodes:
        spec = cast(Mapping[str, object], node.get("spec") or {})
        taints = cast(list[Mapping[str, str]], spec.get("taints") or [])
        if not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints):
            good.add(name_of(node))
    return set(wanted) - good


def _conditions(now: str) -> list[Object]:
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return [
        {"type": kind, "status": status, "reason": reason, **times}
        for kind, status, reason in _READY
    ]
