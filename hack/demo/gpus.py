"""The GPUs of a cluster and their holders, read as the operator reads them.

Devices from GPUNode objects or the labels of GPU feature discovery, holders from the annotations of
pods that have not ended.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from demo.bars import Gpu
from gpu_scheduler.api.allocation import parse
from gpu_scheduler.api.names import ALLOCATION, LABEL_JOB
from gpu_scheduler.state.nodes.devices import from_gpunode, from_labels

FAKE = "kwok.x-k8s.io/node"
Object = Mapping[str, Any]


def is_fake(node: Object) -> bool:
    """Whether kwok plays the node."""
    return FAKE in node["metadata"].get("annotations", {})


def holds(pod: Object) -> bool:
    """Whether a pod has GPUs: placed, and not ended."""
    ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return ALLOCATION in pod["metadata"].get("annotations", {}) and not ended


def milli(pod: Object) -> int:
    """What a placed pod holds in all, in milli-GPU."""
    return sum(
        allocated.milli for allocated in parse(pod["metadata"]["annotations"][ALLOCATION]).devices
    )


def job_of(pod: Object) -> str:
    """The GPUJob that a pod belongs to."""
    return str(pod["metadata"]["labels"].get(LABEL_JOB, pod["metadata"]["name"]))


def gpus(nodes: Iterable[Object], gpu_nodes: Iterable[Object], pods: Iterable[Object]) -> list[Gpu]:
    """Every device of the cluster, real nodes first."""
    reported = {node["metadata"]["name"]: node.get("status", {}) for node in gpu_nodes}
    held: dict[tuple[str, str], Counter[str]] = {}
    count: dict[tuple[str, str], Counter[str]] = {}
    for pod in sorted(filter(holds, pods), key=milli, reverse=True):
        allocation = parse(pod["metadata"]["annotations"][ALLOCATION])
        for allocated in allocation.devices:
            key = (allocation.node, allocated.device)
            held.setdefault(key, Counter())[job_of(pod)] += allocated.milli
            count.setdefault(key, Counter())[job_of(pod)] += 1
    found = []
    for node in sorted(nodes, key=lambda node: (is_fake(node), node["metadata"]["name"])):
        name = node["metadata"]["name"]
        devices = from_gpunode(reported.get(name, {})) or from_labels(node["metadata"]["labels"])
        found += [
            Gpu(
                node=name,
                index=device.index,
                model=short(device.model),
                fake=is_fake(node),
                held=held.get((name, device.id), Counter()),
                pods=count.get((name, device.id), Counter()),
            )
            for device in devices
        ]
    return found


def short(product: str) -> str:
    """The model without its maker: ``NVIDIA A100-PCIE-40GB`` is an A100."""
    words = product.replace("-", " ").split()
    return next((word for word in words if word not in ("NVIDIA", "Tesla")), product)
