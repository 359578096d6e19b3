from typing import Any

import msgspec
import pytest

from gpu_scheduler.core.model.quantity import MOST
from gpu_scheduler.core.model.request import DeviceRequest, NodeFilter, NodeSelectorTerm, Toleration
from gpu_scheduler.core.model.requirement import Requirement
from gpu_scheduler.core.model.resources import NodeResources
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.pod_shape import TOO_MANY, node_filter, pod_resources, pod_shape_of


def make_pod(**spec: Any) -> Pod:
    return msgspec.convert({"spec": spec}, Pod)


def requests(cpu: str = "", memory: str = "", *, sidecar: bool = False) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    container: dict[str, Any] = {
        "resources": {"requests": {name: text for name, text in requests.items() if text}}
    }
    return container | ({"restartPolicy": "Always"} if sidecar else {})


CPU: dict[str, tuple[dict[str, Any], int]] = {
    "nothing asked": ({"containers": [{}]}, 0),
    "containers add up": ({"containers": [requests("1"), requests("250m")]}, 1250),
    "parts of a milli count as one": ({"containers": [requests("100n")]}, 1),
    "the largest init container counts": (
        {"initContainers": [requests("2"), requests("3")], "containers": [requests("1")]},
        3000,
    ),
    "small init containers do not": (
        {"initContainers": [requests("1"), requests("1")], "containers": [requests("2")]},
        2000,
    ),
    "sidecars run beside the containers": (
        {"initContainers": [requests("1", sidecar=True)], "containers": [requests("2")]},
        3000,
    ),
    "an init container runs beside the sidecars before it": (
        {
            "initContainers": [requests("1", sidecar=True), requests("3")],
            "containers": [requests("2")],
        },
        4000,
    ),
    "and not beside those after it": (
        {
            "initContainers": [requests("3"), requests("1", sidecar=True)],
            "containers": [requests("1")],
        },
        3000,
    ),
    "overhead comes on top": ({"containers": [requests("1")], "overhead": {"cpu": "100m"}}, 1100),
    "the pod's own request replaces the sum": (
        {"containers": [requests("1")], "resources": {"requests": {"cpu": "4"}}},
        4000,
    ),
}


@pytest.mark.parametrize("case", CPU)
def test_effective_cpu(case: str) -> None:
    spec, milli = CPU[case]
    assert pod_resources(make_pod(**spec)).cpu_milli == milli


def test_memory_and_ephemeral_storage_are_bytes() -> None:
    storage = {"resources": {"requests": {"ephemeral-storage": "1G"}}}
    pod = make_pod(containers=[requests(memory="1Gi"), storage], overhead={"memory": "1Mi"})
    assert pod_resources(pod) == NodeResources(0, (1 << 30) + (1 << 20), 10**9)


def test_filter_keeps_selector_terms_and_tolerations() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    terms = [{"matchExpressions": [expression], "matchFields": [field]}, {}]
    pod = make_pod(
        nodeSelector={"b": "2", "a": "1"},
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        },
        tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, {"key": "x"}],
    )
    assert node_filter(pod) == NodeFilter(
        selector=(("a", "1"), ("b", "2")),
        terms=(
            NodeSelectorTerm(
                labels=(Requirement("zone", "In", ("a", "b")),),
                fields=(Requirement("metadata.name", "In", ("n1",)),),
            ),
            NodeSelectorTerm(),
        ),
        tolerations=(Toleration("gpu", "Exists", "", "NoSchedule"), Toleration("x", "Equal")),
    )


def test_no_affinity_is_not_an_empty_list_of_terms() -> None:
    assert node_filter(make_pod()).terms is None


def test_equal_pods_have_equal_hashable_pod_kinds() -> None:
    half = (DeviceRequest(0, 1, 500),)
    pods = [make_pod(containers=[requests("1")], nodeSelector=s) for s in ({"a": "1"}, {"a": "1"})]
    first, second = (pod_shape_of(pod, half, ("a100",), (7, 0)) for pod in pods)
    assert hash(first) == hash(second)
    assert first == second
    assert (first.devices, first.models, first.min_compute) == (half, ("a100",), (7, 0))
    assert first.cpu_milli == 1000


SCALARS: dict[str, tuple[dict[str, str], dict[str, int]]] = {
    "what device plugins serve": (
        {"rdma/hca": "1", "example.com/a": "2k"},
        {"rdma/hca": 1, "example.com/a": 2000},
    ),
    "hugepages are bytes": ({"hugepages-2Mi": "1Gi"}, {"hugepages-2Mi": 1 << 30}),
    "none of it": ({"rdma/hca": "0"}, {}),
    "GPUs are given out device by device": (
        {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"},
        {},
    ),
    "words for a share are no resource of a node": (
        {"gpu-scheduler.io/milligpu": "500", "nvidia.com/gpumem": "4000"},
        {},
    ),
    "what cannot be read is more than any node has": ({"rdma/hca": "many"}, {"rdma/hca": MOST}),
    "more kinds than are read": ({f"example.com/{n}": "1" for n in range(65)}, {TOO_MANY: MOST}),
}


@pytest.mark.parametrize("case", SCALARS)
def test_all_other_countable_resources(case: str) -> None:
    quantities, expected = SCALARS[case]
    pod = make_pod(containers=[{"resources": {"requests": quantities}}])
    assert dict(pod_resources(pod).scalars) == expected


def resized(asked: str, allocated: str, there: str, *, reason: str = "") -> Pod:
    """A pod with one container and these CPUs, as its node says."""
    status = {
        "name": "main",
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": there}},
    }
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    body = {
        "spec": {"containers": [{"name": "main", **requests(asked)}]},
        "status": {"containerStatuses": [status], "conditions": [pending] if reason else []},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Pod)


@pytest.mark.parametrize(
    ("pod", "cores"),
    [
        (resized("2", "2", "2"), 2),
        (resized("2", "24", "24"), 24),  # not made smaller yet
        (resized("2", "2", "24"), 24),
        (resized("24", "2", "2"), 24),  # it may be made larger at any time
        (resized("24", "2", "2", reason="Deferred"), 24),
        (resized("24", "2", "3", reason="Infeasible"), 3),  # it will never be
    ],
)
def test_a_resized_pod_holds_the_largest_of_what_it_may_have(pod: Pod, cores: int) -> None:
    assert pod_resources(pod).cpu_milli == cores * 1000


def test_what_a_node_says_of_a_container_that_cannot_be_read_changes_nothing() -> None:
    pod = resized("2", "3", "4")
    raw = (msgspec.Raw(b'{"name":"main","allocatedResources":[]}'), msgspec.Raw(b"7"))
    pod = msgspec.structs.replace(
        pod, status=msgspec.structs.replace(pod.status, container_statuses=raw)
    )
    assert pod_resources(pod).cpu_milli == 2000
