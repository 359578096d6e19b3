"""Pods that are to go and do not: hurried, and then no longer counted on."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.fake_client import NOT_FOUND, FakeClient
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import half, make_pod
from tests.unit.state.cluster_states import make_cluster_state

from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.jobs.conflicts import MAX_GRACE_SECONDS
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.eviction.overdue import LATE_SECONDS, Overdue
from gpu_scheduler.state.jobs.beginnings import Beginnings
from gpu_scheduler.state.jobs.job import epoch_seconds

POD = PodUID("uid-job-0")
ENDS = "2026-01-01T12:00:00Z"


def going(ends: str = ENDS, version: int = 2, grace_seconds: int | None = None) -> Pod:
    pod = make_pod(node="a", devices=half(), phase="Running", version=version)
    meta = msgspec.structs.replace(
        pod.metadata, deletion_timestamp=ends, deletion_grace_period_seconds=grace_seconds
    )
    return msgspec.structs.replace(pod, metadata=meta)


class Case:
    def __init__(self, seconds_left: float, answer: Any = None) -> None:
        self.state = make_cluster_state(make_pod(node="a", devices=half(), phase="Running"))
        self.client: Any = FakeClient(lambda sent: answer)
        self.now = epoch_seconds(ENDS) - seconds_left
        self.state.beginnings = Beginnings(lambda: self.now)
        self.overdue = Overdue(self.state, self.client, now=lambda: self.now)
        self.see(going())

    def see(self, pod: Pod) -> None:
        known = self.state.pod_changed(pod)
        assert known is not None
        self.overdue.observe(pod, known)
        self.state.changes.some.clear()

    @property
    def woken(self) -> bool:
        return self.state.changes.some.is_set()

    @property
    def leaving(self) -> list[str]:
        return [each.uid for each in self.state.running_pods.leaving()]


@virtual
async def test_a_pod_within_its_grace_period_is_waited_for() -> None:
    case = Case(MAX_GRACE_SECONDS)
    await case.overdue.check()
    assert (case.leaving, case.client.sent, case.woken) == ([POD], [], False)


@pytest.mark.parametrize("answer", [None, NOT_FOUND])
def test_a_pod_with_a_grace_period_of_thirty_years_is_hurried(answer: Any) -> None:
    @virtual
    async def run() -> None:
        case = Case(1e9, answer)
        await case.overdue.check()
        (sent,) = case.client.sent
        assert (sent.method, sent.path) == ("DELETE", "/api/v1/namespaces/team-a/pods/job-0")
        assert sent.body == {
            "preconditions": {"uid": POD},
            "gracePeriodSeconds": MAX_GRACE_SECONDS,
        }

    run()


@virtual
async def test_a_pod_that_should_have_gone_is_not_counted_on_and_keeps_its_devices() -> None:
    case = Case(-LATE_SECONDS - 1)
    version, free = case.state.changes.version, list(case.state.snapshot().free_milli)
    await case.overdue.check()
    known = case.state.running_pods.get(POD)
    assert known is not None and known.spared and not known.leaving
    assert case.leaving == [] and case.woken and case.state.changes.version > version
    assert list(case.state.snapshot().free_milli) == free
    case.state.pod_changed(going(version=3))
    await case.overdue.check()
    assert case.leaving == [] and case.woken
    case.state.pod_gone(POD)
    assert case.state.running_pods.get(POD) is None
    assert max(case.state.snapshot().free_milli) == 1000


STEPS = [3600.0, -3600.0, 86_400.0, -86_400.0, 1e9, -1e9]


@pytest.mark.parametrize("ahead", STEPS)
def test_when_it_should_have_gone_is_counted_from_when_it_was_told(ahead: float) -> None:
    """The API server's clock is ``ahead`` of ours: so is the time by which it is to be gone."""

    @virtual
    async def run() -> None:
        case = Case(1e9)
        now = case.now = epoch_seconds(ENDS)
        case.state.beginnings.live = True
        case.see(going(text(now + 30 + ahead), version=3, grace_seconds=30))
        for passed, leaving in ((0.0, [POD]), (30 + LATE_SECONDS, [POD]), (31 + LATE_SECONDS, [])):
            case.now = now + passed
            await case.overdue.check()
            assert case.leaving == leaving
        assert case.client.sent == []

    run()


@virtual
async def test_a_new_leader_waits_no_longer_than_it_was_given() -> None:
    case = Case(1e9)
    now = case.now = epoch_seconds(ENDS)
    case.see(going(text(now + 1e9), version=3, grace_seconds=30))
    case.now = now + 31 + LATE_SECONDS
    await case.overdue.check()
    assert case.leaving == []
    assert case.client.sent == []


def text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
