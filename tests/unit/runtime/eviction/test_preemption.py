"""Evictions that the planner decided: carried out once, told to both, given up in the end."""

import asyncio
import dataclasses
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.binding.test_failed_placements import FakeEvents
from tests.unit.runtime.evicting import Evicting
from tests.unit.runtime.fake_client import AWAY, BROKEN, BUSY, FakeClient, Sent
from tests.unit.runtime.virtual_loop import clock, virtual
from tests.unit.state.builders import half, make_gpujob, make_job, make_pod, make_project
from tests.unit.state.test_cluster_state import make_cluster_state

from gpu_scheduler.core.model.decision import Evict, EvictReason
from gpu_scheduler.core.model.request import JobKey, PodUID
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.eviction.preemption import SPARED_SECONDS, Preempted, Preemptor

VICTIM, WINNER = make_gpujob().key, JobKey("team-a/urgent")
POD = PodUID("uid-job-0")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
MOVE = Evict(POD, VICTIM, WINNER, EvictReason.CONSOLIDATE, "job-0 moves from a and fits on b")
HIGHER = Evict(POD, VICTIM, WINNER, EvictReason.PRIORITY, "its priority is 90, that of job 50")
EVICT = Evict(POD, VICTIM, WINNER, EvictReason.RECLAIM, "job-0 gives 0.5 GPUs on a to urgent")


class Case:
    def __init__(self, answer: Any = None) -> None:
        self.state = make_cluster_state(make_pod(node="a", devices=half(), phase="Running"))
        self.state.project_changed(make_project(quota_milli=0))
        self.state.gpujob_changed(make_gpujob("urgent", uid="urgent-uid"))
        self.state.job_changed(make_job("urgent", uid="urgent-job", owner_uid="urgent-uid"))
        self.state.pod_changed(make_pod("urgent-0", job="urgent-job"))
        self.answer, self.events = answer, FakeEvents()
        self.state.changes.some.clear()
        self.client = FakeClient(self._reply)
        self.evicting = Evicting(self.state, self.client, self.events)
        self.preemption = Preemptor(
            self.state,
            self.evicting.evictor,
            self.events,  # type: ignore[arg-type]
            clock=clock,
            now=lambda: NOON,
        )

    def _reply(self, sent: Sent) -> Any:
        return self.answer

    def carry_out(self, evicts: list[Evict]) -> None:
        """As the planner does, which has heard then of what it decided itself."""
        self.preemption.carry_out(evicts)
        self.state.changes.some.clear()

    @property
    def woken(self) -> bool:
        return self.state.changes.some.is_set()

    @property
    def evictions(self) -> list[Sent]:
        return self.client.of("POST", "/eviction")

    @property
    def leaving(self) -> list[str]:
        return [pod.uid for pod in self.state.running_pods.leaving()]


@virtual
async def test_a_victim_is_evicted_once_and_counts_as_leaving_at_once() -> None:
    case = Case()
    case.state.changes.touched.clear()
    case.carry_out([EVICT])
    assert case.leaving == [POD]
    case.carry_out([EVICT])
    await asyncio.sleep(1)
    (sent,) = case.evictions
    assert sent.path == "/api/v1/namespaces/team-a/pods/job-0/eviction"
    assert sent.body["deleteOptions"] == {"preconditions": {"uid": POD}}  # its own grace period
    assert case.preemption.counts == {"reclaim": 1}
    assert case.preemption.of(VICTIM) == Preempted(WINNER, POD)
    assert case.state.changes.touched == {VICTIM}
    assert case.state.running_pods._lost_to == {("job-uid", 0): WINNER}


@virtual
async def test_a_later_gpujob_of_the_same_name_did_not_give_way() -> None:
    case = Case()
    case.carry_out([EVICT])
    case.state.gpujob_changed(make_gpujob(uid="second"))
    assert case.preemption.of(VICTIM) is None


@virtual
async def test_both_jobs_are_told() -> None:
    case = Case()
    case.carry_out([EVICT])
    assert case.events.said == [
        ("job", "Preempted", EVICT.message),
        ("urgent", "Preempting", EVICT.message),
    ]


@virtual
async def test_a_gang_is_spoken_of_once(caplog: pytest.LogCaptureFixture) -> None:
    case = Case()
    caplog.set_level("INFO", "gpu_scheduler.runtime.eviction.preemption")
    case.state.pod_changed(make_pod("job-1", node="a", devices=half(), phase="Running"))
    message = "gang job gives 1 GPU of its 2 pods to urgent"
    one = dataclasses.replace(EVICT, whole_job=True, message=message)
    case.carry_out([one, dataclasses.replace(one, pod=PodUID("uid-job-1"))])
    assert sum(message in line for line in caplog.messages) == 1
    assert [event[1] for event in case.events.said] == ["Preempted", "Preempting"]
    await asyncio.sleep(1)
    assert len(case.evictions) == 2


@virtual
async def test_a_pod_that_has_lost_its_owner_is_told_itself() -> None:
    case = Case()
    case.state.pod_changed(make_pod(version=2, node="a", devices=half(), phase="Running", job=""))
    case.carry_out([dataclasses.replace(EVICT, job=JobKey("team-a/pod job-0"))])
    assert case.events.said == [
        ("job-0", "Preempted", EVICT.message),
        ("urgent", "Preempting", EVICT.message),
    ]


@virtual
async def test_pods_that_are_gone_or_going_are_left_alone() -> None:
    case = Case()
    case.state.pod_changed(
        make_pod(version=2, node="a", devices=half(), phase="Running", deleting=True)
    )
    case.carry_out([EVICT])
    case.state.pod_gone(POD)
    case.carry_out([EVICT])
    await asyncio.sleep(1)
    assert case.evictions == [] and case.events.said == []


@virtual
async def test_a_pod_whose_budget_says_no_for_long_is_spared_for_a_while() -> None:
    case = Case(BUSY)
    async with case.evicting.running():
        case.carry_out([HIGHER])
        await asyncio.sleep(20)
        assert case.leaving == [POD] and len(case.evictions) > 3
        version = case.state.changes.version
        await asyncio.sleep(60)
        assert case.leaving == [] and case.woken
        assert case.state.changes.version > version
        known = case.state.running_pods.get(POD)
        assert known is not None and known.spared
        await asyncio.sleep(SPARED_SECONDS)
        case.carry_out([])
        known = case.state.running_pods.get(POD)
        assert known is not None and not known.spared


@virtual
async def test_an_eviction_whose_answer_got_lost_is_asked_for_again_and_counts_meanwhile() -> None:
    case = Case(AWAY)
    async with case.evicting.running():
        case.carry_out([EVICT])
        await asyncio.sleep(5)
        assert case.leaving == [POD] and not case.woken
        case.answer = {}
        await asyncio.sleep(10)
    assert case.leaving == [POD] and not case.woken
    assert len(case.evictions) > 1


@virtual
async def test_a_refused_eviction_is_given_up_at_once() -> None:
    case = Case(errors.Forbidden(403, "Forbidden", "told so"))
    async with case.evicting.running():
        case.carry_out([EVICT])
        await asyncio.sleep(1)
    assert case.leaving == [] and case.woken


@virtual
async def test_what_a_pods_end_frees_is_no_longer_leaving() -> None:
    case = Case()
    case.state.job_changed(make_job())
    case.carry_out([EVICT])
    case.state.pod_changed(make_pod(version=5, node="a", devices=half(), phase="Failed"))
    assert case.leaving == []
    assert case.state.running_pods.get(POD) is None


@virtual
async def test_that_a_pod_moves_stands_on_its_job_before_it_is_evicted() -> None:
    case = Case()
    case.carry_out([MOVE])
    await asyncio.sleep(1)
    mark, eviction = case.client.sent
    assert (mark.method, mark.path) == ("PATCH", "/apis/batch/v1/namespaces/team-a/jobs/job")
    assert mark.body["metadata"]["uid"] == "job-uid"
    (told,) = mark.body["metadata"]["annotations"].items()
    assert told == ("gpu-scheduler.io/moved-0", f"2026-01-01T12:00:00Z {POD}")
    assert eviction.path.endswith("/eviction")
    assert case.preemption.counts == {"consolidate": 1}


@virtual
async def test_a_pod_whose_move_cannot_be_written_down_stays() -> None:
    case = Case(errors.NotFound(404, "NotFound", "the Job is gone"))
    case.carry_out([MOVE])
    await asyncio.sleep(1)
    assert case.evictions == [] and case.leaving == [] and case.woken
    case.answer = None
    case.carry_out([EVICT])  # for another reason, which needs no mark
    await asyncio.sleep(1)
    assert len(case.evictions) == 1


@virtual
async def test_marks_that_no_longer_matter_are_taken_away_with_the_next() -> None:
    case = Case()
    old = {f"gpu-scheduler.io/moved-{i}": f"2026-01-01T{h}:00:00Z u" for i, h in ((4, 11), (5, 10))}
    job = make_job(version=2)
    meta = msgspec.structs.replace(job.metadata, annotations=old)
    case.state.job_changed(msgspec.structs.replace(job, metadata=meta))
    case.carry_out([MOVE])
    await asyncio.sleep(1)
    told = case.client.sent[0].body["metadata"]["annotations"]
    assert {key for key, value in told.items() if value is None} == set(old)


@pytest.mark.parametrize("veto", [BUSY, BROKEN], ids=["a budget", "two budgets for one pod"])
def test_what_is_owed_to_a_guarantee_goes_in_spite_of_budgets_and_is_not_charged(
    veto: Exception,
) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.client.reply = lambda sent: veto if sent.path.endswith("/eviction") else {}
        async with case.evicting.running():
            case.carry_out([EVICT])
            await asyncio.sleep(90)
        assert case.leaving == [POD]
        *asked, mark, delete = case.client.sent
        assert len(asked) >= 8 and all(sent.path.endswith("/eviction") for sent in asked)
        (condition,) = mark.body["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")
        assert (delete.method, delete.path) == ("DELETE", "/api/v1/namespaces/team-a/pods/job-0")
        assert delete.body == {"preconditions": {"uid": POD}}  # its own grace period
        assert "BudgetOverruled" in [reason for _, reason, _ in case.events.said]

    run()


@virtual
async def test_an_eviction_counts_once_and_not_if_it_is_given_up() -> None:
    case = Case(BUSY)
    job = case.state.gpujobs[VICTIM]
    async with case.evicting.running():
        case.carry_out([HIGHER])
        case.carry_out([HIGHER])
        assert case.preemption.costs.of(job).evictions == 1
        await asyncio.sleep(80)
        assert case.preemption.costs.of(job).evictions == 0
