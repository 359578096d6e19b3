"""Nodes, GPUNodes and pods with shares, as the API server has them."""

from typing import Any

from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.api.names import LABEL_JOB, LABEL_PATH, LABEL_PROJECT
from gpu_scheduler.core.model.decision import DeviceAllocation

Body = dict[str, Any]
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
GPUNODES = "/apis/gpu-scheduler.io/v1alpha1/gpunodes"
GPUJOBS = "/apis/gpu-scheduler.io/v1alpha1/gpujobs"
PROJECTS = "/apis/gpu-scheduler.io/v1alpha1/gpuprojects"
A100 = "NVIDIA-A100-PCIE-40GB"


def node(name: str, gpus: int = 2, **labels: str) -> Body:
    return {
        "metadata": {
            "name": name,
            "labels": {
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.product": A100,
                "nvidia.com/gpu.memory": "40960",
                **labels,
            },
        },
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def gpunode(name: str, *uuids: str, containers: list[Body] | None = None) -> Body:
    devices = [
        {
            "uuid": uuid,
            "index": index,
            "model": "NVIDIA A100-PCIE-40GB",
            "memoryMiB": 40960,
            "usableMiB": 40448,
            "computeCapability": "8.0",
            "healthy": True,
        }
        for index, uuid in enumerate(uuids)
    ]
    status = {"devices": devices, "containers": containers or []}
    return {"metadata": {"name": name}, "status": status}


def report(pod: Body, percent: int | None, container: int = 0) -> Body:
    """Of an agent, on a container of a pod."""
    meta = pod["metadata"]
    found = {
        "namespace": meta["namespace"],
        "pod": meta["name"],
        "uid": meta["uid"],
        "container": container,
        "isolation": "interposer",
    }
    return found if percent is None else {**found, "computePercent": percent}


def pod(
    name: str,
    node: str,
    *shares: tuple[str, int],
    namespace: str = "team-a",
    job: str = "",
    phase: str = "Running",
    **meta: Any,
) -> Body:
    devices = [DeviceAllocation(0, device, milli, 40 * milli) for device, milli in shares]
    labels = {LABEL_PATH: "bind", LABEL_PROJECT: namespace} | ({LABEL_JOB: job} if job else {})
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "annotations": annotations(node, devices),
            "labels": labels | meta.pop("labels", {}),
            **meta,
        },
        "status": {"phase": phase},
    }
