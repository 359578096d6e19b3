"""Pods that hold devices and whose owner is gone: they go with it, or stay, and hold till then."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.state.builders import (
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.core.eviction.victims import candidates
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.core.model.running_pods import RunningPod
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.informers.event_handlers import JobHandler
from gpu_scheduler.state.cluster_state import ClusterState

POD, TEAM, KEY = PodUID("uid-job-0"), ProjectName("team-a"), JobKey("team-a/job")
JOB = make_job().metadata.uid


def pod(version: int = 2, **settings: object) -> Pod:
    return make_pod(version=version, node="a", devices=half(), phase="Running", **settings)  # type: ignore[arg-type]


def running() -> ClusterState:
    return make_cluster_state(pod(1))


def ownerless(state: ClusterState, version: int = 2) -> None:
    """The watch shows the Job without an owner."""
    job = make_job(version=version)
    meta = replace(job.metadata, owner_references=())
    JobHandler(state, lambda key: None).changed(replace(job, metadata=meta))


def of(state: ClusterState) -> RunningPod:
    found = state.running_pods.get(POD)
    assert found is not None and state.ledger.held_milli == {"team-a": 500}
    return found


def goes(state: ClusterState) -> bool:
    """Whether a pod goes with its owner: it is no victim, and its room comes."""
    found = of(state)
    assert (POD in state.bereft.following) == found.leaving
    assert bool(candidates([found])) is not found.leaving
    return found.leaving


def gone_gpujob(state: ClusterState) -> None:
    state.gpujob_gone(KEY)


def gone_job(state: ClusterState) -> None:
    state.job_gone(JOB)


@pytest.mark.parametrize("lost", [(gone_gpujob,), (gone_job,), (gone_gpujob, gone_job)])
def test_one_whose_owner_is_deleted_is_as_good_as_leaving(
    lost: tuple[Callable[[ClusterState], None], ...],
) -> None:
    state = running()
    assert not goes(state)
    for each in lost:
        each(state)
        assert goes(state), "before anything is heard of it"
    state.pod_changed(pod())
    assert goes(state)
    assert [each.uid for each in state.running_pods.leaving()] == [POD]
    state.pod_gone(POD)
    assert not state.running_pods.get(POD) and not state.bereft.following
    assert state.ledger.held_milli == {}


def test_one_whose_job_was_left_behind_stays() -> None:
    """kubectl delete gpujob --cascade=orphan: the Job is there, and nobody's."""
    state = running()
    ownerless(state)
    assert not goes(state)
    state.gpujob_gone(KEY)
    state.pod_changed(pod())
    assert not goes(state) and state.bereft.staying == {POD}
    assert of(state).priority == 100
    state.job_gone(JOB)
    assert goes(state), "then the Job was deleted, and takes it along"


def test_one_that_was_left_behind_by_its_job_stays() -> None:
    """kubectl delete job --cascade=orphan: it names no owner any more."""
    state = running()
    state.pod_changed(pod(job=""))
    state.job_gone(JOB)
    assert not goes(state) and state.bereft.staying == {POD}


def test_a_leader_that_finds_them_says_the_same() -> None:
    state = ClusterState()
    state.project_changed(make_project())
    state.nodes.changed(make_node("a"))
    state.pod_changed(pod())
    assert goes(state), "no Job of it is there"
    ownerless(state)
    assert not goes(state)


def test_one_that_has_its_owner_again_is_its_owners() -> None:
    state = running()
    ownerless(state)
    state.gpujob_gone(KEY)
    state.pod_changed(pod())
    assert state.bereft.staying == {POD}
    state.gpujob_changed(make_gpujob(priority=30))
    state.job_changed(make_job(version=3))
    assert not state.bereft.staying and not goes(state)
    assert (of(state).job, of(state).priority) == (KEY, 30)


def test_one_of_an_earlier_gpujob_of_that_name_is_none_of_the_later_one() -> None:
    state = running()
    state.gpujob_gone(KEY)
    state.gpujob_changed(make_gpujob(uid="later", priority=30))
    state.pod_changed(pod())
    assert goes(state) and state.workloads.gpujob_of(state.pods.known[POD]) is None
    assert of(state).job != KEY


def test_one_that_does_not_go_stays_and_may_have_to_give_back_what_is_borrowed() -> None:
    state = running()
    state.gpujob_gone(KEY)
    state.give_up_on(POD)
    assert not goes(state) and state.bereft.staying == {POD}
    state.pod_changed(pod())
    assert not goes(state)
    assert [each.uid for each in state.running_pods.of(TEAM) if not each.spared] == [POD]


def test_one_that_asks_by_itself_is_nobodys_pod_and_not_bereft() -> None:
    state = running()
    state.bereft.see(state.pods.known[POD], holds=False, owned=False)
    assert not state.bereft.following and not state.bereft.staying


EVENTS: dict[str, Callable[[ClusterState, int], object]] = {
    "gpujob": lambda state, version: state.gpujob_changed(make_gpujob()),
    "later gpujob": lambda state, version: state.gpujob_changed(make_gpujob(uid="later")),
    "gpujob gone": lambda state, version: state.gpujob_gone(KEY),
    "job": lambda state, version: state.job_changed(make_job(version=version)),
    "ownerless": ownerless,
    "job gone": lambda state, version: state.job_gone(JOB),
    "pod": lambda state, version: state.pod_changed(pod(version)),
    "orphan": lambda state, version: state.pod_changed(pod(version, job="")),
    "node": lambda state, version: state.nodes.changed(make_node("a", gpus=1 + version % 2)),
    "project": lambda state, version: state.project_changed(make_project(quota_milli=version)),
}


@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=12))
def test_in_whatever_order_it_comes_it_holds_what_it_holds_and_is_one_of_three(
    events: list[str],
) -> None:
    state = running()
    for version, name in enumerate(events, 2):
        EVENTS[name](state, version)
        found = of(state)
        owned = state.workloads.gpujob_of(state.pods.known[POD]) is not None
        kinds = owned, POD in state.bereft.following, POD in state.bereft.staying
        assert sum(kinds) == 1, kinds
        assert found.leaving == kinds[1]
        assert kinds[0] or found.priority == 100
    state.pod_gone(POD)
    assert not state.bereft.following and not state.bereft.staying
    assert state.ledger.held_milli == {}
