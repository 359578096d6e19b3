"""Pods that ask for a share by themselves, in a simulation on a cluster: they run, wait and go."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.simulate.test_what_if import What, as_json, cluster, gpujob, nodes, project, running
from tests.unit.state.builders import half
from tests.unit.state.pods.test_pod_groups import member
from tests.unit.state.pods.test_shares import asking

from gpu_scheduler.api.names import ASK_TYPE, ASKED, GANG_SIZE, LABEL_GANG, LABEL_PATH
from gpu_scheduler.core.model.preemption_policy import STRICT
from gpu_scheduler.simulate.cluster_table import table

WHOLE = {ASKED: "0:gpu-scheduler.io/gpu=1"}
TRAINS = WHOLE | {ASK_TYPE: "training"}


@pytest.fixture
def what(tmp_path: Path) -> What:
    return What(tmp_path)


def share(name: str = "web-1", *notes: dict[str, str], **pod: Any) -> dict[str, Any]:
    more = {key: word for each in notes for key, word in each.items()}
    return {"kind": "Pod", **as_json(asking(name, more, cpu="0", memory="0", **pod))}


def held(name: str, node: str, device: str, *notes: dict[str, str], **pod: Any) -> dict[str, Any]:
    """One that runs, on a whole device."""
    devices = half(device, 1000)
    return share(name, WHOLE, *notes, node=node, devices=devices, phase="Running", **pod)


def four(*notes: dict[str, str], **pod: Any) -> list[dict[str, Any]]:
    """Pods of a Deployment on all four devices."""
    places = [(node, device) for node in "ab" for device in "01"]
    return [held(f"web-{n}", *place, *notes, **pod) for n, place in enumerate(places, 1)]


def test_those_that_run_hold_and_those_that_wait_would_start(what: What) -> None:
    report = what(cluster(held("web-1", "a", "0"), share("web-2", WHOLE), share("web-3")))
    assert (report.before.allocated_milli, report.after.allocated_milli) == (1000, 2500)
    assert sorted(each["pod"] for each in report.starts) == ["web-2", "web-3"]
    (each,) = report.projects
    assert (each["allocatedBefore"], each["allocatedAfter"]) == ("1", "2.5")
    assert report.waits == [] and report.settled


def test_why_they_would_wait_is_told(what: What) -> None:
    report = what(cluster(*four(), share("late")))
    (wait,) = report.waits
    assert (wait["reason"], wait["project"]) == ("WaitingForGPU", "team-a")
    report = what(cluster(share("late")), project(quota=0, limit=0))
    assert [wait["reason"] for wait in report.waits] == ["ExceedsQuota"]
    report = what(cluster(share("lost", namespace="nowhere")))
    assert "belongs to no project" in report.waits[0]["message"]
    assert "nowhere/replicaset web: Invalid" in table(report)


def test_what_the_operator_said_of_one_that_is_not_as_it_must_be_still_holds(what: What) -> None:
    lacks = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Invalid",
        "message": "Invalid: spec.initContainers: gpu-scheduler-cap is missing",
    }
    report = what(cluster(share(conditions=(lacks,)), share("fine")))
    assert [each["pod"] for each in report.starts] == ["fine"]
    (wait,) = report.waits
    assert (wait["reason"], wait["message"]) == ("Invalid", lacks["message"].partition(": ")[2])
    elsewhere = {**lacks, "message": "Invalid: metadata.namespace: belongs to no project"}
    report = what(cluster(share(conditions=(elsewhere,))))
    assert len(report.starts) == 1, "now it does"


def test_one_whose_claim_is_missing_holds_nothing_and_reads_so(what: What) -> None:
    told = "spec.volumes: there is no PersistentVolumeClaim data of namespace team-a; …"
    waits = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "VolumeNotMounted",
        "message": f"VolumeNotMounted: {told}",
    }
    job = {**gpujob("train", gpu=1), "status": {"reason": "VolumeNotMounted", "message": told}}
    job["metadata"] |= {"uid": "uid-train", "creationTimestamp": "2026-01-01T00:00:00Z"}
    report = what(cluster(share(conditions=(waits,)), job))
    assert report.starts == []
    assert [(w["reason"], w["message"]) for w in report.waits] == [("VolumeNotMounted", told)] * 2


def podgroup(least: int) -> dict[str, Any]:
    return {
        "kind": "PodGroup",
        "metadata": {"namespace": "team-a", "name": "ring"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def test_a_podgroup_says_with_how_many_they_start(what: What) -> None:
    members = [as_json(member(name, WHOLE, cpu="0", memory="0")) for name in "xyz"]
    pods = [{"kind": "Pod", **each} for each in members]
    report = what(cluster(*pods))
    assert report.starts == [] and "no PodGroup ring is known" in report.waits[0]["message"]
    assert len(what(cluster(podgroup(3), *pods)).starts) == 3
    assert what(cluster(podgroup(3), *four()[:2], *pods)).starts == []
    assert len(what(cluster(podgroup(2), *four()[:2], *pods)).starts) == 2


def test_what_a_dra_driver_gives_is_looked_for_on_no_node(what: What) -> None:
    asks = {"requests": {"example.com/nic": "1"}, "limits": {"example.com/nic": "1"}}
    pod = {"containers": [{"name": "main", "image": "x", "resources": asks}]}
    job = gpujob("train", gpu=1, template={"spec": pod})
    del job["spec"]["image"]
    nic: dict[str, Any] = {"kind": "DeviceClass", "metadata": {"name": "nic"}}
    served = {**nic, "spec": {"extendedResourceName": "example.com/nic"}}
    waits = what(cluster(), job).waits
    assert [wait["reason"] for wait in waits] == ["Unsatisfiable"]
    assert len(what(cluster(served), job).starts) == 1
    assert len(what(cluster(nic | {"spec": {}}), job).starts) == 0


def test_what_gives_way_is_made_again_by_its_controller_and_else_is_gone(what: What) -> None:
    urgent = gpujob("urgent", gpu=2, priority=90)
    report = what(cluster(*four(TRAINS)), urgent, preemption_policy=STRICT)
    assert len(report.gives_way) == 2 and len(report.starts) == 1
    assert len(report.waits) == 2
    assert {each["job"] for each in report.waits} == {"team-a/replicaset web"}
    bare = four(TRAINS, controller="")
    report = what(cluster(*bare), urgent, preemption_policy=STRICT)
    assert len(report.gives_way) == 2 and report.waits == []


def test_pods_of_a_node_that_is_lost_start_elsewhere(what: What) -> None:
    report = what(cluster(held("web-1", "b", "0")), remove=("node/b",))
    assert [(each["pod"], each["node"]) for each in report.starts] == [("web-1-again", "a")]


def test_one_that_was_released_from_the_gate_is_tied_to_no_node_again(what: What) -> None:
    pod = held("web-1", "b", "0", path="other", labels={LABEL_PATH: "gate"})
    pin = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    zone = {"key": "gone", "operator": "DoesNotExist", "values": []}
    for term in ({"matchFields": [pin]}, {"matchExpressions": [zone], "matchFields": [pin]}):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod["spec"]["affinity"] = {"nodeAffinity": required}
        report = what(cluster(pod), remove=("node/b",))
        assert nodes(report) == ["a"]


def test_a_gang_of_them_starts_as_one(what: What) -> None:
    size = {GANG_SIZE: "3"}
    members = [share(n, WHOLE, size, labels={LABEL_GANG: "ring"}) for n in ("x", "y", "z")]
    report = what(cluster(held("web-1", "a", "0"), *members))
    assert len(report.starts) == 3
    report = what(cluster(*four()[:2], *members))
    assert report.starts == []
    (wait,) = report.waits
    assert (wait["job"], wait["reason"]) == ("team-a/gang ring", "WaitingForGang")


def test_they_are_called_by_who_made_them_and_several_of_one_are_one_line(what: What) -> None:
    def of_a_deployment(pod: dict[str, Any]) -> dict[str, Any]:
        pod["metadata"]["ownerReferences"][0]["name"] = "web-5d4f8"
        return pod

    made = {"labels": {"pod-template-hash": "5d4f8"}}
    pods = [of_a_deployment(pod) for pod in four(TRAINS, **made)]
    report = what(cluster(*pods), gpujob("urgent", gpu=2, priority=90), preemption_policy=STRICT)
    assert {each["job"] for each in report.gives_way} == {"team-a/deployment web"}
    assert "its priority is 90, that of team-a/deployment web 50" in report.gives_way[0]["message"]
    assert [each["job"] for each in report.waits] == ["team-a/deployment web"] * 2
    shown = table(report)
    assert "  team-a/deployment web: WaitingForGPU, number 1 of project team-a, 2 pods" in shown
    assert shown.count("team-a/deployment web: ") == 1

    urgent = {"gpu-scheduler.io/priority": "90"}
    pods = [of_a_deployment(share("web-1", WHOLE, urgent, **made))]
    report = what(cluster(*pods, *running(priority=10)), preemption_policy=STRICT)
    (gone,) = report.gives_way
    assert gone["for"] == "team-a/deployment web"
    assert "to team-a/deployment web: its priority is 90" in gone["message"]


def test_a_gang_of_them_that_gives_way_is_called_a_gang_once(what: What) -> None:
    members = four(TRAINS, {GANG_SIZE: "4"}, labels={LABEL_GANG: "ring"})
    report = what(cluster(*members), gpujob("urgent", gpu=2, priority=90), preemption_policy=STRICT)
    said = [each["message"] for each in report.gives_way]
    assert len(said) == 4
    for each in said:
        assert each.startswith("team-a/gang ring gives 4 GPUs of its 4 pods to team-a/urgent: ")
