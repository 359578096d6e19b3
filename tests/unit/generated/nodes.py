"""Nodes: with labels of GPU feature discovery, allocatable amounts and conditions that lie."""

from typing import Any

from hypothesis import strategies as st
from tests.unit.generated.values import Obj, integers, no_quantities, quantities, texts

USABLE_MIB = 40_960


def node(name: str, gpus: int = 2, **labels: str) -> Obj:
    """A node whose GPUs are known from labels."""
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name,
                "topology.kubernetes.io/zone": "a",
                "nvidia.com/gpu.count": str(gpus),
                "nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB",
                "nvidia.com/gpu.memory": str(USABLE_MIB),
                "nvidia.com/gpu.compute.major": "8",
                "nvidia.com/gpu.compute.minor": "0",
                **labels,
            },
            "annotations": {},
        },
        "spec": {
            "unschedulable": False,
            "taints": [{"key": "slow", "value": "", "effect": "PreferNoSchedule"}],
        },
        "status": {
            "allocatable": {
                "cpu": "64",
                "memory": "256Gi",
                "ephemeral-storage": "100Gi",
                "pods": "110",
            },
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        },
    }


@st.composite
def hostile_nodes(draw: st.DrawFn) -> Obj:
    """Node bad-0, which is nobody's loss."""
    good = node("bad-0")
    labels, status = good["metadata"]["labels"], good["status"]
    for label in draw(st.lists(st.sampled_from(sorted(labels)), max_size=3)):
        labels[label] = draw(st.one_of(texts, integers.map(str), quantities, no_quantities))
    amounts: dict[str, Any] = status["allocatable"]
    for amount in draw(st.lists(st.sampled_from([*amounts, "nvidia.com/gpu"]), max_size=2)):
        amounts[amount] = draw(quantities)
    return good
