"""What each fake node has: an agent's pod with an address on loopback, and GPUs with UUIDs."""

from collections.abc import Mapping
from typing import Any

from tests.perf.install import RELEASE
from tests.perf.settings import GPUS_PER_NODE

from gpu_scheduler.api.names import API_VERSION, COMPONENT_AGENT, LABEL_COMPONENT

DEVICE_MIB = 81_000
_ADDRESSES = 250  # of a block of loopback addresses


def node_name(number: int) -> str:
    """As ``cluster.fake_nodes`` calls it."""
    return f"gpu-{number:04d}"


def agent_name(number: int) -> str:
    """Of the agent's pod."""
    return f"agent-{number:04d}"


def agent_ip(number: int) -> str:
    """Where the agent listens; never beyond loopback."""
    return f"127.0.{1 + number // _ADDRESSES}.{1 + number % _ADDRESSES}"


def uuids(number: int) -> list[str]:
    """Of the node's devices."""
    return [f"GPU-{number:08x}-0000-4000-8000-{device:012x}" for device in range(GPUS_PER_NODE)]


def gpu_node(number: int) -> dict[str, Any]:
    """What an agent has written of its node."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUNode",
        "metadata": {"name": node_name(number)},
    }


def gpu_node_status(number: int) -> dict[str, Any]:
    """The same of the devices."""
    devices = [
        {
            "uuid": uuid,
            "index": index,
            "model": "NVIDIA A100-SXM4-80GB",
            "memoryMiB": 81_920,
            "usableMiB": DEVICE_MIB,
            "computeCapability": "8.0",
            "healthy": True,
        }
        for index, uuid in enumerate(uuids(number))
    ]
    return {"status": {"isolation": "interposer", "gpus": len(devices), "devices": devices}}


def agent_pod(number: int) -> dict[str, Any]:
    """An agent's pod, which kwok plays."""
    labels = {LABEL_COMPONENT: COMPONENT_AGENT}
    containers = [{"name": "agent", "image": "bench/agent:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": agent_name(number), "namespace": RELEASE, "labels": labels},
        "spec": {"nodeName": node_name(number), "containers": containers},
    }


def agent_address(number: int) -> dict[str, Any]:
    """A patch of its status: where it listens, and the container that the operator tells orders."""
    ip = agent_ip(number)
    container = {
        "name": "agent",
        "image": "bench/agent:1",
        "imageID": "bench",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{number:064x}",
    }
    return {"status": {"podIP": ip, "podIPs": [{"ip": ip}], "containerStatuses": [container]}}


def has_address(status: Mapping[str, Any]) -> bool:
    """Whether a pod's status is so that the operator tells the agent its orders, and asks it."""
    containers = status.get("containerStatuses") or ()
    return bool(status.get("podIP")) and any(each.get("containerID") for each in containers)
