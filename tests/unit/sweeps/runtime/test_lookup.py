"""Trials that nobody explains are looked up, and what is found cannot stop the looking."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.fake_client import BROKEN
from tests.unit.runtime.virtual_loop import Running, virtual
from tests.unit.sweeps.runtime.cases import Case, trial_pod

from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.runtime.lookup import Lookup


class Pods:
    """A client that answers these, the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    async def get(self, path: str, wanted: Any, **_: Any) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return msgspec.json.decode(msgspec.json.encode({"items": [answer]}), type=wanted)


def looking(case: Case, client: Any) -> Coroutine[Any, Any, Any]:
    return Lookup(client, case.trials, lambda: case.now).run()


@virtual
async def test_a_pod_that_cannot_be_read_does_not_end_the_looking() -> None:
    case = Case()
    case.job(completed_indexes="0")
    pod = trial_pod(0, message='{"loss": 0.5}')
    client = Pods(BROKEN, {"metadata": 3}, pod)
    async with Running(looking(case, client)):
        for _ in range(10):
            case.now += 1
            await asyncio.sleep(1)
    assert client.answers == [pod]
    assert case.outcome(0).state is TrialState.SUCCEEDED


@virtual
async def test_pods_that_cannot_be_listed_are_asked_for_ever_more_seldom_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    case = Case()
    case.job(completed_indexes="0")
    client = Pods(BROKEN)
    async with Running(looking(case, client)):
        for _ in range(60):
            case.now += 1
            await asyncio.sleep(1)
    assert sum("looking for pods" in line for line in caplog.messages) == 1
    assert 3 <= client.asked <= 8
