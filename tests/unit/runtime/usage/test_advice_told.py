"""Advice in a job's status, and in Events: once a rule and day."""

from typing import Any

from tests.unit.runtime.usage.stage import UsageStage

from gpu_scheduler.api.advice import Advice
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.runtime.common.events import Events
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.runtime.usage.advice_told import AdviceTold
from gpu_scheduler.runtime.usage.works import LiveWork, live_works

KEY, DAY = JobKey("team-a/job"), 86400.0
IDLE = Advice(rule="GPU_IDLE", since=None, message="it is idle", command="release it")
SMALL = Advice(rule="SMALL_BATCH", since=None, message="more", command="")


class Said(Events):
    """Events that nobody writes."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def say(self, subject: Any, kind: str, reason: str, message: str) -> None:
        self.said.append((f"{subject.kind}/{subject.name}", reason, message))


class Case:
    def __init__(self) -> None:
        self.stage = UsageStage()
        self.stage.job()
        self.stage.runs()
        self.events = Said()
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
