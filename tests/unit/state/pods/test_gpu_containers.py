from typing import Any

import pytest
from tests.unit.state.builders import make_pod

from gpu_scheduler.api.orders import OrderedContainer
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.gpu_containers import gpu_containers
from gpu_scheduler.state.pods.pod import record

GRANTS = (DeviceAllocation(1, "GPU-a", 500, 20224), DeviceAllocation(1, "GPU-b", 250, 10112))
SIDECAR, MAIN = {"name": "sidecar"}, {"name": "main", "volumeMounts": [{"name": "x"}]}
CAPPED = {"name": "main", "volumeMounts": [{"name": "gpu-scheduler-cap"}]}


def pod(
    containers: list[dict[str, Any]] | None = None, statuses: list[Any] | None = None, **more: str
) -> Pod:
    return make_pod(
        node="n1",
        devices=GRANTS,
        containers=containers or [SIDECAR, CAPPED],
        containerStatuses=statuses or [],
        annotations_=more,
    )


def found(made: Pod) -> tuple[OrderedContainer, ...]:
    allocation = record(made).allocation
    assert allocation is not None
    return gpu_containers(made, allocation)


def test_a_container_is_known_by_its_devices_and_id() -> None:
    ids = [{"name": "main", "containerID": "containerd://abc"}, {"name": "sidecar"}]
    assert found(pod(statuses=ids)) == (
        OrderedContainer(1, "main", {"GPU-a": 10112, "GPU-b": 10112}, "abc", promised=True),
    )


def test_the_cap_is_the_one_that_the_library_obeys() -> None:
    (live,) = found(pod(**{"gpu-scheduler.io/c1-memory-mib": "5000"}))
    assert live.caps_mib == {"GPU-a": 5000, "GPU-b": 5000}


@pytest.mark.parametrize("text", ["", "-1", "many", "1e3", "²", "9" * 40])
def test_a_cap_that_is_no_number_leaves_the_granted_one(text: str) -> None:
    (odd,) = found(pod(**{"gpu-scheduler.io/c1-memory-mib": text}))
    assert odd.caps_mib == {"GPU-a": 20224, "GPU-b": 10112}


def test_without_the_mount_nothing_is_promised() -> None:
    assert not found(pod([SIDECAR, MAIN]))[0].promised


def test_a_container_index_that_the_pod_does_not_have_is_left_out() -> None:
    assert found(pod([SIDECAR])) == ()


@pytest.mark.parametrize(
    "odd", [{"name": 7}, {"name": "main", "containerID": 3}, {"name": "main", "containerID": ""}]
)
def test_a_status_that_cannot_be_read_leaves_the_id_open(odd: dict[str, Any]) -> None:
    assert found(pod(statuses=[odd]))[0].id == ""


FILES = {"name": "cache", "volumeMounts": [{"name": "gpu-scheduler-c65"}]}


def with_sidecar(*init: dict[str, Any], statuses: list[Any] | None = None) -> Pod:
    return make_pod(
        node="n1",
        devices=(
            DeviceAllocation(0, "GPU-a", 500, 20224),
            DeviceAllocation(65, "GPU-a", 250, 10112),
        ),
        containers=[{"name": "main"}],
        init_containers=list(init),
        initContainerStatuses=statuses or [],
    )


def test_a_sidecar_is_known_by_its_files_wherever_webhooks_put_theirs() -> None:
    ids = [{"name": "cache", "containerID": "containerd://def"}, {"name": "gpu-scheduler-cap"}]
    injected = {"name": "mesh", "restartPolicy": "Always"}
    capped = {**FILES, "volumeMounts": [*FILES["volumeMounts"], {"name": "gpu-scheduler-cap"}]}
    made = with_sidecar(
        injected, {"name": "gpu-scheduler-cap"}, {"name": "x"}, capped, statuses=ids
    )
    assert found(made) == (
        OrderedContainer(0, "main", {"GPU-a": 20224}),
        OrderedContainer(65, "cache", {"GPU-a": 10112}, "def", promised=True),
    )


def test_a_sidecar_that_the_pod_does_not_have_is_left_out() -> None:
    assert [c.name for c in found(with_sidecar({"name": "x"}))] == ["main"]
