"""Troubles of devices are told once, to their node and to the jobs that sit beside strangers."""

import pytest
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.state.builders import half, make_pod
from tests.unit.state.nodes.test_agents import devices
from tests.unit.state.pods.test_shares import asking
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.runtime.informers.custom_resources import CustomResources
from gpu_scheduler.runtime.status.device_events import DeviceEvents, Devices, news

WELL, ILL = devices(), devices(healthy=False, illness="XID 79")
USED = devices(intruders=("python (pid 7)",))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (WELL, ILL, ["DeviceUnhealthy"]),
        (ILL, ILL, []),
        (ILL, WELL, []),
        (WELL, USED, ["ForeignProcesses"]),
        (USED, devices(intruders=("sh (pid 8)", "python (pid 7)")), ["ForeignProcesses"]),
        (USED, WELL, []),
        ((), ILL, ["DeviceUnhealthy"]),
    ],
)
def test_only_a_turn_for_the_worse_is_news(
    before: Devices, after: Devices, told: list[str]
) -> None:
    assert [reason for _, reason in news(before, after)] == told


def test_the_node_is_told_and_jobs_beside_strangers_too() -> None:
    beside = make_pod(node="a", devices=half("GPU-0"), phase="Running")
    state, events = make_cluster_state(beside), FakeEvents()
    device_events = DeviceEvents(state, events)  # type: ignore[arg-type]
    state.nodes.reported("a", USED)
    device_events.changed("a", "uid", WELL, USED)
    sentence = (
        "GPU-0 of a has processes without a share of it: python (pid 7); it takes no new pods"
    )
    assert events.said == [
        ("a", "ForeignProcesses", sentence),
        ("job", "ForeignProcesses", sentence),
    ]
    events.said.clear()
    device_events.changed("a", "uid", WELL, ILL)  # the job learns of it by its condition
    assert [(name, reason) for name, reason, _ in events.said] == [("a", "DeviceUnhealthy")]


def test_pods_that_ask_by_themselves_are_told_of_strangers_themselves() -> None:
    state, events = make_cluster_state(), FakeEvents()
    for name in ("web-1", "web-2"):
        state.pod_changed(asking(name, node="a", devices=half("GPU-0", 250), phase="Running"))
    state.pod_changed(asking("web-3", node="a", devices=half("GPU-1"), phase="Running"))
    state.nodes.reported("a", USED)
    DeviceEvents(state, events).changed("a", "uid", WELL, USED)  # type: ignore[arg-type]
    assert [name for name, _, _ in events.said] == ["a", "web-1", "web-2"]


def test_jobs_elsewhere_are_not_bothered() -> None:
    elsewhere = make_pod(node="a", devices=half("GPU-1"), phase="Running")
    gone = make_pod("gone", node="a", devices=half("GPU-0"), phase="Failed")
    state, events = make_cluster_state(elsewhere, gone), FakeEvents()
    state.nodes.reported("a", USED)
    DeviceEvents(state, events).changed("a", "uid", WELL, USED)  # type: ignore[arg-type]
    assert [name for name, _, _ in events.said] == ["a"]


def test_what_is_found_at_the_start_is_no_news() -> None:
    state, events = make_cluster_state(), FakeEvents()
    device_events = DeviceEvents(state, events)  # type: ignore[arg-type]
    custom_resources = CustomResources(
        state, changed=lambda key: None, devices_changed=device_events.changed
    )
    device = {"uuid": "GPU-0", "index": 0, "model": "A100", "usableMiB": 40000, "healthy": False}
    body = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}}
    custom_resources.node({**body, "status": {"devices": [device]}})
    assert events.said == []
    well = {**device, "healthy": True}
    for version, each in (("2", well), ("3", device), ("4", device)):
        meta = {**body["metadata"], "resourceVersion": version}
        custom_resources.node({"metadata": meta, "status": {"devices": [each]}})
    assert [reason for _, reason, _ in events.said] == ["DeviceUnhealthy"]
