"""Stamps of machines whose clock is wrong: the API server's, a node's, and an earlier leader's."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.state.builders import (
    half,
    make_assignment,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
    make_project,
)

from gpu_scheduler.core.model.request import PodUID, WaitingJob
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.pods.pod import record

NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
POD = PodUID("uid-job-0")
OFF = [3600.0, -3600.0, 86_400.0, -86_400.0, 30 * 365 * 86_400.0, -30 * 365 * 86_400.0]


def text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Cluster:
    """At noon; ``live``: the leader leads already."""

    def __init__(self, *, live: bool, job: str = "2026-01-01T10:00:00Z") -> None:
        self.now = NOON
        self.state = ClusterState(now=lambda: self.now)
        self.state.beginnings.live = live
        self.state.nodes.changed(make_node("a"))
        self.state.project_changed(make_project())
        self.state.gpujob_changed(make_gpujob(created=job))
        self.state.job_changed(make_job(parallelism=4))

    def see(self, version: int = 1, **pod: Any) -> None:
        self.state.pod_changed(make_pod(version=version, **pod))

    @property
    def waiting(self) -> WaitingJob:
        (job,) = self.state.waiting_jobs()
        return job

    @property
    def since(self) -> float:
        known = self.state.running_pods.get(POD)
        assert known is not None
        return known.since


@pytest.mark.parametrize("off", OFF)
def test_what_comes_while_a_leader_leads_waits_since_it_came(off: float) -> None:
    cluster = Cluster(live=True, job=text(NOON + off))
    cluster.see(created=text(NOON + off))
    cluster.now += 30
    cluster.see(version=2, created=text(NOON + off))
    assert cluster.waiting.pods[0].since == NOON
    assert cluster.waiting.created == NOON


def test_a_new_leader_counts_from_when_the_api_server_says_it_was_made() -> None:
    cluster = Cluster(live=False, job=text(NOON - 7200))
    cluster.see(created=text(NOON - 3600))
    assert cluster.waiting.pods[0].since == NOON - 3600
    assert cluster.waiting.created == NOON - 7200


def test_what_was_made_in_the_future_waits_since_a_new_leader_saw_it() -> None:
    cluster = Cluster(live=False)
    cluster.see(created=text(NOON + 3600))
    cluster.now += 60
    cluster.see(version=2, created=text(NOON + 3600))
    assert cluster.waiting.pods[0].since == NOON


@pytest.mark.parametrize("off", OFF)
def test_a_pod_has_worked_since_it_was_seen_to_start_whatever_its_node_says(off: float) -> None:
    cluster = Cluster(live=True)
    cluster.see(node="a", devices=half(), created=text(NOON - 600))
    cluster.now += 30
    for version in (2, 3):
        cluster.see(version, node="a", devices=half(), phase="Running", startTime=text(NOON + off))
        assert cluster.since == NOON + 30
        cluster.now += 30


def test_a_place_that_came_to_nothing_does_not_begin_the_wait_anew() -> None:
    cluster = Cluster(live=True)
    cluster.see(created=text(NOON))
    pod = cluster.state.waiting.pod(POD)
    assert pod is not None
    cluster.state.decisions.assume(make_assignment())
    cluster.now += 30
    cluster.state.forget(POD, pod)
    assert cluster.waiting.pods[0].since == NOON
    cluster.state.pod_gone(POD)
    assert cluster.state.beginnings._of == {}


BOUND = {"type": "PodScheduled", "status": "True", "lastTransitionTime": text(NOON - 600)}


def bound(off: float) -> Pod:
    """Ten minutes ago; its kubelet's clock is ``off``."""
    status = {"startTime": text(NOON - 600 + off), "conditions": (BOUND,)}
    return make_pod(node="a", devices=half(), phase="Running", **status)


@pytest.mark.parametrize("off", OFF)
def test_a_new_leader_counts_from_the_binding_which_the_api_server_has_dated(off: float) -> None:
    cluster = Cluster(live=False)
    cluster.state.pod_changed(bound(off))
    assert cluster.since == NOON - 600


def test_what_no_kubelet_has_taken_has_not_started() -> None:
    assert record(make_pod(node="a", devices=half(), conditions=(BOUND,))).started == ""
    assert record(make_pod(node="a", phase="Running", startTime=text(NOON))).started == text(NOON)


def test_nothing_has_started_before_it_was_made() -> None:
    made, before = text(NOON - 600), text(NOON - 3600)
    odd = make_pod(node="a", phase="Running", created=made, startTime=before)  # no PodScheduled
    assert record(odd).started == made
