from pathlib import Path
from typing import Any

import pytest

from cluster.errors import ClusterError
from cluster.nodes import complete, fake_nodes, not_schedulable, read

CLUSTERS = Path(__file__).parents[2] / "fixtures" / "clusters"
NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(("file", "gpus"), [("dell-saas.yaml", 8), ("dell-selfhosted.yaml", 7)])
def test_the_dell_clusters_have_their_devices(file: str, gpus: int) -> None:
    nodes: list[Any] = read(CLUSTERS / file)
    assert len(nodes) == 4
    assert sum(int(node["metadata"]["labels"]["nvidia.com/gpu.count"]) for node in nodes) == gpus


def test_a_file_with_another_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("{kind: Node, metadata: {name: a}}\n---\n{kind: Pod}\n")
    with pytest.raises(ClusterError, match=r"nodes.yaml: document 1: .* Node"):
        read(file)


def test_generated_nodes_differ_in_name_only() -> None:
    nodes: list[Any] = fake_nodes(3, gpus=4, model="NVIDIA-A30")
    assert [node["metadata"].pop("name") for node in nodes] == ["gpu-0000", "gpu-0001", "gpu-0002"]
    assert nodes[0] == nodes[1] == nodes[2]
    assert nodes[0]["metadata"]["labels"]["nvidia.com/gpu.memory"] == "24576"


def test_an_unknown_model_needs_its_memory() -> None:
    with pytest.raises(ClusterError, match="memory_mib"):
        fake_nodes(1, model="unheard of")
    assert len(fake_nodes(1, model="unheard of", memory_mib=1000)) == 1


def test_nodes_without_a_gpu_carry_no_gpu_label() -> None:
    node: Any = fake_nodes(1, gpus=0)[0]
    assert node["metadata"]["labels"] == {}


def test_a_completed_node_is_ready_and_played_by_kwok() -> None:
    given: Any = fake_nodes(1)[0]
    node: Any = complete(given, now=NOW)
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    assert conditions.pop("Ready") == "True"
    assert set(conditions.values()) == {"False"}
    assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "gpu-0000"
    assert node["status"]["allocatable"] == given["status"]["allocatable"]


def test_completing_keeps_what_was_given() -> None:
    node: Any = complete(
        {
            "metadata": {"name": "a", "labels": {"kubernetes.io/arch": "arm64"}},
            "spec": {"unschedulable": True},
            "status": {"capacity": {"cpu": "4"}, "addresses": []},
        },
        now=NOW,
    )
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert node["spec"] == {"unschedulable": True}
    assert node["status"]["allocatable"] == {"cpu": "4"}
    assert node["status"]["addresses"] == []


@pytest.mark.parametrize(
    ("node", "field"),
    [
        ({"metadata": {"name": "A B"}, "status": {"capacity": {"cpu": "1"}}}, "metadata.name"),
        ({"metadata": {"name": "a"}}, "status.capacity"),
    ],
)
def test_an_unusable_node_is_refused_by_field(node: dict[str, Any], field: str) -> None:
    with pytest.raises(ClusterError, match=field):
        complete(node, now=NOW)


def test_a_node_takes_pods_once_its_not_ready_taint_is_gone() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    own = {"key": "team", "effect": "NoSchedule"}
    nodes: list[Any] = [
        {"metadata": {"name": "fresh"}, "spec": {"taints": [taint]}},
        {"metadata": {"name": "good"}, "spec": {"taints": [own]}},
    ]
    assert not_schedulable(nodes, ["fresh", "good", "absent"]) == {"fresh", "absent"}
