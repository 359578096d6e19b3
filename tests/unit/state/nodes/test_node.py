import msgspec
import pytest
from tests.unit.state.builders import CREATED, GIB, make_node, make_pod
from tests.unit.state.cluster_states import make_cluster_state

from gpu_scheduler.api import gpunode
from gpu_scheduler.core.model.cluster import Taint
from gpu_scheduler.core.model.quantity import MOST
from gpu_scheduler.kube.objects import Node
from gpu_scheduler.state.nodes.devices import from_gpunode, from_labels, not_listed
from gpu_scheduler.state.nodes.node import info, unschedulable

NO_SCHEDULE = "NoSchedule"
CLOSED: dict[str, tuple[Node, str]] = {
    "open": (make_node(), ""),
    "cordoned": (make_node(cordoned=True), "is cordoned"),
    "not ready": (make_node(ready=False), "is not ready"),
    "without conditions": (Node(), "is not ready"),
    "being deleted": (make_node(deletionTimestamp=CREATED), "is being deleted"),
    "tainted by Kubernetes": (
        make_node(taints=({"key": "node.kubernetes.io/disk-pressure", "effect": NO_SCHEDULE},)),
        "has the taint node.kubernetes.io/disk-pressure",
    ),
    "a soft taint of Kubernetes": (
        make_node(taints=({"key": "node.kubernetes.io/x", "effect": "PreferNoSchedule"},)),
        "",
    ),
    "tainted by people": (make_node(taints=({"key": "gpu", "effect": NO_SCHEDULE},)), ""),
}


@pytest.mark.parametrize("case", CLOSED)
def test_why_a_node_takes_no_pods(case: str) -> None:
    node, why = CLOSED[case]
    assert unschedulable(node) == why


def test_a_condition_that_nobody_dated_counts() -> None:
    """The API server writes a time that was never set as null."""
    ready = b'{"type": "Ready", "status": "True", "lastTransitionTime": null}'
    node = msgspec.json.decode(b'{"status": {"conditions": [%s]}}' % ready, type=Node)
    assert unschedulable(node) == ""


def test_taints_of_people_are_kept_for_tolerations() -> None:
    taints = (
        {"key": "gpu", "value": "a100", "effect": NO_SCHEDULE},
        {"key": "soft", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    )
    assert info(make_node(taints=taints)).taints == (Taint("gpu", "a100", NO_SCHEDULE),)


def test_capacity_is_what_the_kubelet_allows() -> None:
    found = info(make_node(cpu="63500m", memory="2Gi"))
    assert (found.cpu_milli, found.memory_bytes) == (63500, 2 * GIB)
    assert found.ephemeral_bytes == 100 * GIB


@pytest.mark.parametrize(("text", "pods"), [("110", 110), ("1k", 1000)])
def test_pod_slots_are_a_quantity(text: str, pods: int) -> None:
    assert info(make_node(pods=text)).pods == pods


def test_labels_name_devices_by_index() -> None:
    devices = from_labels(make_node(gpus=2).metadata.labels)
    assert [(d.id, d.index, d.usable_mib, d.compute) for d in devices] == [
        ("0", 0, 40960, (8, 0)),
        ("1", 1, 40960, (8, 0)),
    ]


@pytest.mark.parametrize("missing", ["count", "product", "memory"])
def test_labels_that_are_not_complete_mean_no_devices(missing: str) -> None:
    labels = dict(make_node().metadata.labels)
    del labels[f"nvidia.com/gpu.{missing}"]
    assert from_labels(labels) == ()
    assert (f"no label nvidia.com/gpu.{missing}" in not_listed(labels)) == (missing != "count")
    assert not_listed({}) == ""


@pytest.mark.parametrize(
    ("sliced", "said"),
    [
        ({"gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}, "gpu.product=NVIDIA-A100"),
        ({"gpu.slices.gi": "1"}, "gpu.slices.gi=1"),
        ({"mig-1g.5gb.count": "7", "mig-2g.10gb.count": "0"}, "mig-1g.5gb.count=7"),
        ({"mig-2g.10gb.count": "0", "mig.capable": "true", "mig.strategy": "single"}, ""),
        ({"gpu.product": "Tesla-T4-SHARED", "gpu.replicas": "4"}, ""),
    ],
)
def test_nodes_that_count_slices_of_gpus_list_none(sliced: dict[str, str], said: str) -> None:
    labels = {f"nvidia.com/{name}": text for name, text in sliced.items()}
    node = make_node(labels=labels)
    assert bool(from_labels(node.metadata.labels)) == (not said)
    state = make_cluster_state(make_pod())
    state.nodes.changed(node)
    (told,) = state.snapshot().nodes
    assert told.unschedulable == told.not_listed
    assert ("has MIG enabled" in told.not_listed) == bool(said)
    assert said in told.not_listed


@pytest.mark.parametrize("count", ["x", "-3", ""])
def test_a_count_that_is_no_number_means_no_devices(count: str) -> None:
    assert from_labels({**make_node().metadata.labels, "nvidia.com/gpu.count": count}) == ()


@pytest.mark.parametrize(
    ("label", "text", "right"),
    [
        ("count", "1000000000", "0 to 64"),
        ("count", "65", "0 to 64"),
        ("count", "9" * 63, "0 to 64"),
        ("memory", "1", "1000 to 16777216"),
        ("memory", "0", "1000 to 16777216"),
        ("memory", "-5", "1000 to 16777216"),
        ("memory", "9" * 20, "1000 to 16777216"),
        ("memory", "9" * 40, "1000 to 16777216"),
    ],
)
def test_absurd_labels_make_a_node_unusable_with_a_reason(
    label: str, text: str, right: str
) -> None:
    node = make_node(labels={f"nvidia.com/gpu.{label}": text})
    assert from_labels(node.metadata.labels) == ()
    state = make_cluster_state(make_pod())
    state.nodes.changed(node)
    (told,) = state.snapshot().nodes
    assert f"nvidia.com/gpu.{label}={text}" in told.unschedulable
    assert right in told.unschedulable
    state.nodes.reported("a", from_gpunode({"devices": [entry(0)]}))
    assert state.snapshot().nodes[0].unschedulable == ""  # the agent knows better


@pytest.mark.parametrize("text", ["-1", "9E", "much", "9" * 5000])
@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage", "pods"])
def test_what_a_kubelet_cannot_have_closes_its_node(resource: str, text: str) -> None:
    node = make_node()
    node.status.allocatable[resource] = text
    found = info(node)
    assert f"status.allocatable.{resource}" in found.unschedulable
    assert len(found.unschedulable) < 200
    each = (found.cpu_milli, found.memory_bytes, found.ephemeral_bytes, found.pods)
    assert all(0 <= amount < MOST for amount in each)


@pytest.mark.parametrize("mib", [0, -1, 999, 10**30])
def test_an_absurd_device_takes_no_pods_and_says_why(mib: int) -> None:
    first, second = from_gpunode({"devices": [entry(0, usableMiB=mib), entry(1)]})
    assert (first.usable_mib, first.healthy) == (0, False)
    assert "usableMiB" in first.trouble
    assert second.trouble == ""


def test_a_node_of_more_devices_than_there_can_be_is_unusable() -> None:
    devices = from_gpunode({"devices": [entry(i) for i in range(1000)]})
    assert len(devices) == 64
    assert all("at most 64" in device.trouble for device in devices)


def entry(index: int, **more: object) -> dict[str, object]:
    return {
        "uuid": f"GPU-{index}",
        "index": index,
        "model": "NVIDIA A100-PCIE-40GB",
        "usableMiB": 40448,
        "computeCapability": "8.0",
        "healthy": True,
        **more,
    }


def test_a_gpunode_names_devices_by_uuid_in_order_of_their_index() -> None:
    devices = from_gpunode({"devices": [entry(1), entry(0, healthy=False)]})
    assert [(d.id, d.index) for d in devices] == [("GPU-0", 0), ("GPU-1", 1)]
    assert [d.healthy for d in devices] == [False, True]
    assert (devices[1].usable_mib, devices[1].compute) == (40448, (8, 0))


def test_what_a_context_takes_is_read_as_the_agent_writes_it() -> None:
    written = gpunode.Device(
        uuid="GPU-0",
        index=0,
        model="A100",
        memory_mib=40960,
        usable_mib=40448,
        compute_capability="8.0",
        context_mib=304,
    ).model_dump(by_alias=True, mode="json")
    assert from_gpunode({"devices": [written]})[0].context_mib == 304
    for absurd in (None, "much", -1):
        assert from_gpunode({"devices": [entry(0, contextMiB=absurd)]})[0].context_mib == 0


@pytest.mark.parametrize("bad", [None, "x", {}, {"uuid": "GPU-9"}, entry(1, usableMiB="much")])
def test_a_device_that_cannot_be_read_is_left_out(bad: object) -> None:
    assert [d.id for d in from_gpunode({"devices": [bad, entry(0)]})] == ["GPU-0"]


def test_a_device_that_is_listed_twice_counts_once() -> None:
    twice = [entry(0), entry(1), entry(2, uuid="GPU-0", usableMiB=1)]
    devices = from_gpunode({"devices": twice})
    assert [(d.id, d.index, d.usable_mib) for d in devices] == [
        ("GPU-0", 0, 40448),
        ("GPU-1", 1, 40448),
    ]


def test_a_device_that_does_not_say_that_it_is_healthy_is_not() -> None:
    sick = entry(0)
    del sick["healthy"]
    assert not from_gpunode({"devices": [sick]})[0].healthy


def test_strangers_on_a_device_are_named_without_what_changes_all_the_time() -> None:
    processes = [{"pid": 42, "name": "python", "usedMiB": 7}, {"pid": 43}, "x"]
    (device,) = from_gpunode({"devices": [entry(0, foreignProcesses=processes)]})
    assert device.intruders == ("python (pid 42)", "a process (pid 43)")
    (alone,) = from_gpunode({"devices": [entry(0, foreignProcesses=None, message="fine.")]})
    assert (alone.intruders, alone.illness) == ((), "fine")
