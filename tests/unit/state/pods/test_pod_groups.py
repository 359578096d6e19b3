"""Kubernetes' own gangs: pods that name a PodGroup, and the least of them that start together."""

from typing import Any

import msgspec
import pytest
from tests.unit.state.builders import half, make_assignment
from tests.unit.state.pods.test_shares import asking, state, waiting

from gpu_scheduler.api.names import DISTINCT_GPUS, GANG_SIZE, LABEL_GANG
from gpu_scheduler.core.model.request import Gang, JobKey, WaitingJob
from gpu_scheduler.kube.objects import (
    GangPolicy,
    Meta,
    Pod,
    PodGroup,
    PodGroupSpec,
    SchedulingGroup,
    SchedulingPolicy,
)
from gpu_scheduler.state.cluster_state import ClusterState

RING = JobKey("team-a/podgroup ring")


def member(name: str, notes: dict[str, str] | None = None, **more: Any) -> Pod:
    made = asking(name, notes, restart="Never", **more)
    spec = msgspec.structs.replace(made.spec, scheduling_group=SchedulingGroup("ring"))
    return msgspec.structs.replace(made, spec=spec)


def says(known: ClusterState, least: int | None, namespace: str = "team-a") -> None:
    """The PodGroup; None: its pods start one by one."""
    gang = GangPolicy(least) if least is not None else None
    meta = Meta(name="ring", namespace=namespace, uid="ring")
    found = PodGroup(meta, PodGroupSpec(SchedulingPolicy(gang)))
    if known.groups.pod_groups.put(found):
        known.pod_group_said(namespace, "ring")


def ring(known: ClusterState) -> WaitingJob | None:
    return waiting(known).get(RING)


def gang(known: ClusterState) -> Gang:
    found = ring(known)
    assert found is not None and found.gang is not None
    return found.gang


@pytest.mark.parametrize("first", [True, False])
def test_the_podgroup_says_with_how_many_pods_it_starts(first: bool) -> None:
    known = state()
    if first:
        says(known, 2)
    known.pod_changed(member("a"))
    says(known, 2)
    assert (gang(known).missing, gang(known).size, gang(known).distinct) == (2, 2, True)
    assert len(waiting(known)[RING].pods) == 1, "which is too few"
    known.pod_changed(member("b"))
    known.pod_changed(member("c"))
    assert [pod.name for pod in waiting(known)[RING].pods] == ["a", "b"], "the least first"


def test_beyond_the_least_each_starts_when_it_fits_on_a_gpu_of_its_own() -> None:
    known = state()
    says(known, 2)
    for name in "abcd":
        known.pod_changed(member(name))
    for name, device in (("a", "0"), ("b", "1")):
        known.pod_changed(member(name, node="a", devices=half(device), version=2))
    assert [pod.name for pod in waiting(known)[RING].pods] == ["c"]
    assert gang(known).missing == 1 and len(gang(known).devices) == 2 and gang(known).distinct
    assert gang(known).nodes == {"a"}


def test_until_it_is_known_its_pods_wait_and_read_why() -> None:
    known = state()
    asked: list[None] = []
    known.groups.pod_groups.want = lambda: asked.append(None)
    known.pod_changed(asking("alone"))
    assert not asked, "nobody asks for PodGroups before a pod names one"
    known.pod_changed(member("a"))
    assert asked and ring(known) is None
    assert known.groups.records[RING].problem == (
        "spec.schedulingGroup: no PodGroup ring is known in this namespace; with how many pods it "
        "starts is read there, once it is made"
    )
    says(known, 1, namespace="other")
    assert ring(known) is None
    says(known, 1)
    assert gang(known).missing == 1
    known.groups.pod_groups.drop("team-a", "ring")
    known.pod_group_said("team-a", "ring")
    assert "no PodGroup ring" in known.groups.records[RING].problem


def test_one_by_one_is_no_gang() -> None:
    known = state()
    says(known, None)
    known.pod_changed(member("a"))
    known.pod_changed(member("b"))
    found = ring(known)
    assert found is not None and found.gang is None and len(found.pods) == 2


def test_a_least_that_changes_counts_from_then_on() -> None:
    known = state()
    says(known, 3)
    known.pod_changed(member("a"))
    known.pod_changed(member("b"))
    version = known.changes.version
    says(known, 2)
    assert gang(known).missing == 2 and known.changes.version > version
    version = known.changes.version
    says(known, 2)
    assert known.changes.version == version, "nothing new"


def test_a_least_that_nobody_can_start_is_said() -> None:
    known = state()
    says(known, 1001)
    known.pod_changed(member("a"))
    assert "starts with 1001 pods; at most 1000" in known.groups.records[RING].problem


def test_another_key_that_names_a_gang_goes_before_it() -> None:
    known = state()
    says(known, 5)
    known.pod_changed(member("a", {GANG_SIZE: "2"}, labels={LABEL_GANG: "mine"}))
    assert [*waiting(known)] == [JobKey("team-a/gang mine")]


def test_a_gang_and_a_podgroup_of_one_name_are_two() -> None:
    known = state()
    says(known, 2)
    known.pod_changed(member("a"))
    known.pod_changed(asking("b", {GANG_SIZE: "2"}, labels={LABEL_GANG: "ring"}))
    assert [*waiting(known)] == [RING, JobKey("team-a/gang ring")]


def test_its_pods_may_share_gpus_where_they_say_so() -> None:
    known = state()
    says(known, 2)
    known.pod_changed(member("a", {DISTINCT_GPUS: "false"}))
    assert not gang(known).distinct


def test_a_decision_for_one_counts_before_it_is_seen() -> None:
    known = state()
    says(known, 1)
    known.pod_changed(member("a"))
    known.pod_changed(member("b"))
    (pod,) = waiting(known)[RING].pods
    known.decisions.assume(make_assignment("a", job=RING))
    assert [pod.name for pod in waiting(known)[RING].pods] == ["b"]
