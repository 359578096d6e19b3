"""What pods that ask by themselves are called in sentences: by who made them, each once."""

import dataclasses
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.eviction.test_preemption import EVICT
from tests.unit.runtime.eviction.test_preemption import Case as PreemptionCase
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import half, make_node
from tests.unit.state.pods.test_shares import asking, state

from gpu_scheduler.api.names import GANG_SIZE, LABEL_GANG
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput
from gpu_scheduler.kube.objects import OwnerReference, Pod
from gpu_scheduler.state.pods.shares import group_name, share_of

HASH = {"pod-template-hash": "5d4f8"}


def owned(kind: str, name: str, pod: str = "web-1", **more: Any) -> Pod:
    """A pod with this controller."""
    made = asking(pod, **more)
    owners = (OwnerReference(kind, name, "owner", True),) if kind else ()
    meta = msgspec.structs.replace(made.metadata, owner_references=owners)
    return msgspec.structs.replace(made, metadata=meta)


def name(pod: Pod) -> str:
    share = share_of(pod)
    assert share is not None
    return group_name(pod, share)


@pytest.mark.parametrize(
    ("kind", "owner", "labels", "called"),
    [
        ("ReplicaSet", "web-5d4f8", HASH, "deployment web"),
        ("ReplicaSet", "web-5d4f8", {}, "replicaset web-5d4f8"),
        ("ReplicaSet", "web", HASH, "replicaset web"),
        ("ReplicaSet", "web-", {"pod-template-hash": ""}, "replicaset web-"),
        ("StatefulSet", "db-5d4f8", HASH, "statefulset db-5d4f8"),
        ("RayCluster", "ray", {}, "raycluster ray"),
        ("", "", {}, "pod web-1"),
        ("ReplicaSet", "web-5d4f8", HASH | {LABEL_GANG: "ring"}, "gang ring"),
    ],
)
def test_who_made_a_pod_gives_it_its_name(
    kind: str, owner: str, labels: dict[str, str], called: str
) -> None:
    notes = {GANG_SIZE: "2"} if LABEL_GANG in labels else {}
    assert name(owned(kind, owner, labels=labels, more=notes)) == f"team-a/{called}"


def test_an_owner_that_nobody_checked_fills_no_sentence() -> None:
    found = name(owned("Kind\n" * 500, "name\x00 " * 500))
    assert found.isprintable() and len(found) < 150


def test_keys_stay_those_of_single_pods_and_names_go_with_them() -> None:
    known = state()
    for pod in ("web-1", "web-2"):
        known.pod_changed(owned("ReplicaSet", "web-5d4f8", pod, labels=HASH))
    keys = [JobKey("team-a/pod web-1"), JobKey("team-a/pod web-2")]
    assert sorted(known.groups.records) == keys
    assert [known.groups.name_of(key) for key in keys] == ["team-a/deployment web"] * 2
    assert known.groups.name_of(JobKey("team-a/train")) == "team-a/train"
    known.pod_gone(PodUID("uid-web-1"))
    assert [known.groups.name_of(key) for key in keys] == [keys[0], "team-a/deployment web"]


def test_several_of_one_deployment_are_said_once_in_a_list_of_who_holds() -> None:
    known = state()
    known.nodes.changed(make_node("a", 4))
    for number in range(3):
        at = {"node": "a", "devices": half(str(number), 1000), "phase": "Running", "labels": HASH}
        known.pod_changed(owned("ReplicaSet", "web-5d4f8", f"web-{number}", **at))
    alone = {"node": "a", "devices": half("3", 1000), "phase": "Running"}
    known.pod_changed(owned("", "", "notebook", **alone))
    known.pod_changed(owned("StatefulSet", "db", "db-0"))
    said = plan(
        PlanInput(
            known.snapshot(),
            known.planner_projects(),
            known.waiting_jobs(),
            running_pods=known.running_pods,
            now=0.0,
            packing=Packing.FRAGMENTATION,
        )
    )
    (wait,) = said.waits
    assert wait.job == "team-a/pod db-0"
    assert wait.message.endswith("; held by team-a/deployment web, team-a/pod notebook")


@virtual
async def test_whoever_gave_way_is_told_for_whom_by_that_name() -> None:
    case = PreemptionCase()
    case.state.pod_changed(owned("ReplicaSet", "web-5d4f8", labels=HASH))
    case.carry_out([dataclasses.replace(EVICT, beneficiary=JobKey("team-a/pod web-1"))])
    told = case.preemption.of(EVICT.job)
    assert told is not None and told.by == "team-a/deployment web"
