from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.jobs.pods import HALF, make_pod, required

from gpu_scheduler.api import allocation
from gpu_scheduler.core.model.decision import DeviceAllocation
from gpu_scheduler.jobs.binding import bind
from gpu_scheduler.jobs.gate import ungate
from gpu_scheduler.jobs.place import Pin, obstacle, place
from gpu_scheduler.jobs.write import NotPlaceableError

OURS = "gpu-scheduler.io/placement"
POD = "/api/v1/namespaces/team-a/pods/frac05-0-x"
PIN = {"key": "metadata.name", "operator": "In", "values": ["dell-0"]}


def terms_of(body: Any) -> list[dict[str, Any]]:
    affinity = body["spec"]["affinity"]["nodeAffinity"]
    terms: list[dict[str, Any]] = affinity["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    return terms


def test_bind_commits_node_and_allocation_for_exactly_this_pod() -> None:
    write = place(make_pod(), "dell-0", HALF)
    assert (write.method, write.path) == ("POST", f"{POD}/binding")
    assert write.content_type == "application/json"
    assert write.body["metadata"]["uid"] == "uid-1"
    assert write.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "dell-0"}
    written = write.body["metadata"]["annotations"]
    assert written["gpu-scheduler.io/c0-devices"] == "GPU-a"
    assert written["gpu-scheduler.io/c0-memory-mib"] == "20224"
    parsed = allocation.parse(written["gpu-scheduler.io/allocation"])
    assert (parsed.node, parsed.devices) == ("dell-0", HALF)


def test_ungate_is_one_patch_with_both_preconditions() -> None:
    write = place(make_pod(gates=(OURS,)), "dell-0", HALF)
    assert (write.method, write.path) == ("PATCH", POD)
    assert write.content_type == "application/strategic-merge-patch+json"
    meta = write.body["metadata"]
    assert (meta["uid"], meta["resourceVersion"]) == ("uid-1", "42")
    assert meta["annotations"]["gpu-scheduler.io/c0-devices"] == "GPU-a"
    assert write.body["spec"]["schedulingGates"] == [{"$patch": "delete", "name": OURS}]
    assert terms_of(write.body) == [{"matchFields": [PIN]}]


def test_ungating_stops_the_following_of_fields() -> None:
    assert place(make_pod(gates=(OURS,)), "dell-0", HALF).body["metadata"]["managedFields"] == [{}]
    assert "managedFields" not in place(make_pod(), "dell-0", HALF).body["metadata"]


def test_preferred_affinity_and_pod_affinity_are_left_alone() -> None:
    body = place(make_pod(gates=(OURS,)), "dell-0", HALF).body
    assert list(body["spec"]["affinity"]) == ["nodeAffinity"]
    assert list(body["spec"]["affinity"]["nodeAffinity"]) == [
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]


def test_hostname_pin_leaves_affinity_alone() -> None:
    pod = make_pod(required({"matchFields": [PIN]}), gates=(OURS,))
    body = place(pod, "dell-0", HALF, pin=Pin.HOSTNAME, hostname="dell-0.lan").body
    assert body["spec"] == {
        "schedulingGates": [{"$patch": "delete", "name": OURS}],
        "nodeSelector": {"kubernetes.io/hostname": "dell-0.lan"},
    }


def test_hostname_pin_needs_the_label() -> None:
    with pytest.raises(NotPlaceableError, match=r"node dell-0 .*kubernetes\.io/hostname"):
        place(make_pod(gates=(OURS,)), "dell-0", HALF, pin=Pin.HOSTNAME)


texts = st.sampled_from(["a", "b", "zone"])
expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": texts,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(texts, min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"key": texts, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries({"key": texts, "operator": st.just("Gt"), "values": st.just(["3"])}),
)
fields = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(texts, min_size=1, max_size=1),
    }
)
terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions, min_size=1, max_size=3),
        "matchFields": st.lists(fields, min_size=1, max_size=2),
    },
)


@settings(deadline=None)
@given(st.lists(terms, min_size=1, max_size=4))
def test_ungate_keeps_every_term_and_pins_each(theirs: list[dict[str, Any]]) -> None:
    written = terms_of(ungate(make_pod(required(*theirs), gates=(OURS,)), "dell-0", HALF).body)
    assert len(written) == len(theirs)
    for before, after in zip(theirs, written, strict=True):
        if not before:  # matches no node; the API server lets nobody add to it
            assert after == {}
            continue
        assert after.get("matchExpressions") == before.get("matchExpressions")
        assert after["matchFields"] == [*before.get("matchFields", []), PIN]


OBSTACLES: dict[str, tuple[Any, str]] = {
    "deleted": (make_pod(gates=(OURS,), deletionTimestamp="2026-01-01T00:00:00Z"), "being deleted"),
    "ended": (make_pod(status={"phase": "Failed"}), r"has ended \(Failed\)"),
    "bound": (make_pod({"nodeName": "n1"}), "already on node n1"),
    "foreign gate": (make_pod(gates=(OURS, "example.com/a")), "gate example.com/a still holds"),
    "foreign gate on the bind path": (make_pod(gates=("example.com/a",)), "example.com/a"),
    "other scheduler": (make_pod({"schedulerName": "volcano"}), "scheduler volcano"),
}


@pytest.mark.parametrize("case", OBSTACLES)
def test_obstacle_is_named_and_nothing_is_written(case: str) -> None:
    pod, sentence = OBSTACLES[case]
    with pytest.raises(NotPlaceableError, match=f"team-a/frac05-0-x: .*{sentence}"):
        place(pod, "dell-0", HALF)


def test_waiting_pods_have_no_obstacle() -> None:
    assert obstacle(make_pod()) == ""
    assert obstacle(make_pod(gates=(OURS,))) == ""


def test_ungate_by_itself_refuses_foreign_gates() -> None:
    with pytest.raises(NotPlaceableError, match=r"example\.com/a"):
        ungate(make_pod(gates=(OURS, "example.com/a")), "dell-0", HALF)


@pytest.mark.parametrize("write", [bind, ungate])
def test_annotations_past_the_servers_limit_are_refused(write: Any) -> None:
    room = (256 << 10) - 1000
    assert write(make_pod(annotations={"a": "x" * room}), "dell-0", HALF).body
    with pytest.raises(NotPlaceableError, match=r"metadata\.annotations: \d+ bytes"):
        write(make_pod(annotations={"a": "x" * (256 << 10)}), "dell-0", HALF)


def test_every_gpu_container_gets_its_own_annotations() -> None:
    devices = (
        *HALF,
        DeviceAllocation(2, "GPU-a", 200, 8089),
        DeviceAllocation(2, "GPU-b", 200, 8000),
    )
    written = place(make_pod(), "dell-0", devices).body["metadata"]["annotations"]
    assert written["gpu-scheduler.io/c2-devices"] == "GPU-a,GPU-b"
    assert written["gpu-scheduler.io/c2-memory-mib"] == "8000"
