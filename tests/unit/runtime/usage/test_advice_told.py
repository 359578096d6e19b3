"""Advice in a job's status, and in Events: once a rule and day."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.runtime.usage.stage import RecordedEvents, UsageStage, follow

from gpu_scheduler.api.advice import Advice
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.usage.advice_told import AdviceTold
from gpu_scheduler.runtime.usage.works import LiveWork, live_works

KEY, DAY = JobKey("team-a/job"), 86400.0
IDLE = Advice(rule="GPU_IDLE", since=None, message="it is idle", command="release it")
SMALL = Advice(rule="SMALL_BATCH", since=None, message="more", command="")


class Case:
    def __init__(self) -> None:
        self.stage = UsageStage()
        self.stage.job()
        self.stage.runs()
        self.events = RecordedEvents()
        self.told = AdviceTold(self.events, self.stage.state.changes)
        self.stage.state.changes.take_touched()

    async def work(self) -> LiveWork:
        (found,) = (await live_works(self.stage.state, self.stage.seen, 0.0)).values()
        return found

    async def take(self, *found: Advice, now: float = 0.0) -> bool:
        """Whether the job's status is to be looked at."""
        self.told.take(await self.work(), found, now)
        return KEY in self.stage.state.changes.take_touched()


async def test_it_is_told_once_and_word_for_word_while_the_same_rules_hold() -> None:
    case = Case()
    assert await case.take(IDLE)
    again = IDLE.model_copy(update={"message": "it is idle for longer"})
    assert not await case.take(again, now=60.0)
    assert case.told.of("gpujob-uid") == (IDLE,)
    assert case.events.said == [("GPUJob/job", "Advice", "GPU_IDLE: it is idle (release it)")]


async def test_an_event_comes_once_a_rule_and_day() -> None:
    case = Case()
    for now in (0.0, 7200.0, 14400.0):
        await case.take(IDLE, now=now)
        await case.take(now=now + 3600)
    assert len(case.events.said) == 1
    await case.take(SMALL, IDLE, now=20_000.0)
    assert len(case.events.said) == 2
    await case.take(now=21_000.0)
    await case.take(IDLE, now=DAY)
    assert len(case.events.said) == 3


async def test_another_leader_repeats_nothing() -> None:
    case = Case()
    case.stage.state.gpujobs[KEY].status = {"advice": [IDLE.to_json()]}
    await case.take(IDLE)
    assert case.events.said == []
    await case.take(SMALL)
    assert len(case.events.said) == 1


def status(case: Case, told: Any) -> Any:
    context = JobContext(advice=lambda: told)
    job = case.stage.state.gpujobs[KEY]
    return gpujob_status(job, (), (), project=None, now="", known=context).to_json().get("advice")


def test_a_status_keeps_what_was_told_until_somebody_has_looked() -> None:
    case = Case()
    case.stage.state.gpujobs[KEY].status = {"advice": [IDLE.to_json()]}
    assert status(case, None) == [IDLE.to_json()]
    assert status(case, ()) is None
    assert status(case, (SMALL,)) == [SMALL.to_json()]


async def test_an_idle_job_is_told_so_in_its_namespace() -> None:
    stage = UsageStage()
    stage.job()
    pod = stage.runs()
    stage.works(pod, 600)
    stage.works(pod, 4000, busy=0.0)
    stage.answers()
    await stage.minute.look()
    (advice,) = stage.workload()["advice"]
    assert advice["rule"] == "GPU_IDLE"
    assert "suspend" in advice["command"]
    assert stage.minute.headlines == {"gpujob-uid": "GPU_IDLE"}
    assert KEY in stage.state.changes.take_touched()
    stage.works(pod, 60)
    stage.answers()
    await stage.minute.look()
    assert stage.workload()["advice"][0]["rule"] == "GPU_IDLE"  # for an hour
    stage.works(pod, 4000)
    stage.answers(4000.0)
    await stage.minute.look()
    assert stage.workload()["advice"] == []


class Idling:
    """A job that is idle or works, as its leaders see it."""

    def __init__(self) -> None:
        self.stage = UsageStage()
        self.stage.job()
        self.pod = self.stage.runs()
        self.stage.works(self.pod, 600)
        self.said: list[tuple[str, str, str]] = []

    async def later(self, seconds: int, *, idle: bool) -> dict[str, Any]:
        """What is shown of it after so long."""
        share = self.stage.shares[self.pod.uid]
        self.stage.shares[self.pod.uid] = replace(share, idle_seconds=4000 if idle else 0)
        self.stage.answers(seconds)
        await self.stage.minute.look()
        return self.stage.workload()

    async def changes_leader(self) -> None:
        self.said += self.stage.events.said
        self.stage = await follow(self.stage)


def rules(shown: dict[str, Any]) -> list[str]:
    return [each["rule"] for each in shown["advice"]]


async def test_the_next_leader_says_the_same_since_the_same_time_and_no_second_event() -> None:
    job = Idling()
    before = await job.later(60, idle=True)
    for _ in range(3):
        await job.changes_leader()
        after = await job.later(600, idle=True)
        assert after["advice"] == before["advice"]
        assert after["adviceSince"] == before["adviceSince"] == before["advice"][0]["since"]
    assert [each[1] for each in job.said + job.stage.events.said] == ["Advice"]


async def test_no_headline_and_no_silence_ends_within_its_hour_by_a_change_of_leader() -> None:
    job = Idling()
    assert rules(await job.later(60, idle=True)) == ["GPU_IDLE"]
    await job.changes_leader()
    assert rules(await job.later(1800, idle=False)) == ["GPU_IDLE"]
    await job.changes_leader()
    assert rules(await job.later(1800, idle=False)) == []
    await job.changes_leader()
    assert rules(await job.later(1800, idle=True)) == []
    await job.changes_leader()
    assert rules(await job.later(1800, idle=True)) == ["GPU_IDLE"]
    assert len(job.said + job.stage.events.said) == 1, "once a rule and day"


async def test_a_rule_of_yesterday_is_told_again_by_another_leader() -> None:
    job = Idling()
    await job.later(60, idle=True)
    await job.changes_leader()
    await job.later(7200, idle=False)
    await job.changes_leader()
    shown = await job.later(86_400, idle=True)
    assert rules(shown) == ["GPU_IDLE"]
    assert len(job.said + job.stage.events.said) == 2


async def test_what_was_said_stays_until_its_agent_is_heard_again() -> None:
    job = Idling()
    before = await job.later(60, idle=True)
    await job.changes_leader()
    await job.stage.minute.look()
    shown = job.stage.client.of("PATCH", "/gpuusages/current/status")
    assert all(rules(each.body["status"]["workloads"][0]) == rules(before) for each in shown)
    assert job.stage.events.said == []


@pytest.mark.parametrize("missing", ["adviceSince", "adviceEvents"])
async def test_what_a_version_before_wrote_is_taken_over(missing: str) -> None:
    job = Idling()
    before = await job.later(60, idle=True)
    del job.stage.status()["workloads"][0][missing]
    await job.changes_leader()
    assert (await job.later(60, idle=True))["advice"] == before["advice"]
    assert len(job.said + job.stage.events.said) == 1
