"""What the write that places a trial says of it."""

import asyncio
import json
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.runtime.virtual_loop import Running
from tests.unit.state.builders import make_assignment
from tests.unit.sweeps.runtime.cases import KEY, Case, trial_pod

from gpu_scheduler.api.names import HPARAMS, TRIAL, TRIALS
from gpu_scheduler.core.model.decision import Assignment
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.jobs.write import NotPlaceableError
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.trials import parameters_of
from gpu_scheduler.sweeps.runtime.start import Start
from gpu_scheduler.sweeps.search import studies
from gpu_scheduler.sweeps.search.studies import Studies
from gpu_scheduler.sweeps.search.tpe import TpeMissingError, TpeStudy


def place(pod: str = "job-0") -> Assignment:
    return make_assignment(pod)


async def prepared(start: Start, decision: Assignment) -> Mapping[str, str]:
    """What the write sets, once all is there for it."""
    there = asyncio.Event()
    if not start.prepare(decision, there.set):
        async with Running(start.run()), asyncio.timeout(30):
            await there.wait()
    return start.annotations(decision)


def waiting(case: Case, trial: int, name: str = "", *, number: int = 0, first: int = 0) -> None:
    pod = trial_pod(trial, name, number=number, first=first, node="", devices=(), phase="Pending")
    case.state.pod_changed(pod)


def test_a_trial_gets_the_values_of_its_number_and_says_them() -> None:
    case = Case(completions=8)
    case.job(1, first=4)
    waiting(case, 6, "job-6", number=1, first=4)
    notes = Start(case.state, case.sweeps, Studies()).annotations(place("job-6"))
    assert (notes[TRIAL], notes[TRIALS]) == ("6", "8")
    assert json.loads(notes[HPARAMS]) == parameters_of(case.sweep.search, 6)


def test_a_pod_of_no_sweep_gets_nothing() -> None:
    case = Case()
    start, other = Start(case.state, case.sweeps, Studies()), make_assignment(job="team-a/other")
    assert start.prepare(other, lambda: None) and start.annotations(other) == {}


async def test_an_adaptive_trial_that_is_tried_again_keeps_what_it_had() -> None:
    case = Case(algorithm="tpe")
    case.job()
    start = Start(case.state, case.sweeps, Studies())
    waiting(case, 0, "first")
    waiting(case, 1, "other")
    first = (await prepared(start, place("first")))[HPARAMS]
    assert (await prepared(start, place("other")))[HPARAMS] != first
    waiting(case, 0, "second")
    assert start.prepare(place("second"), lambda: None), "nothing is asked again"
    assert start.annotations(place("second"))[HPARAMS] == first
    assert case.sweep.parameters(0) == json.loads(first)


def test_the_next_leader_gives_an_adaptive_trial_what_its_pod_says() -> None:
    case = Case(algorithm="tpe")
    case.job()
    case.pod(0, "first", hparams='{"lr": 0.125}')
    waiting(case, 0, "second")
    start = Start(case.state, case.sweeps, Studies())
    assert start.prepare(place("second"), lambda: None)
    assert json.loads(start.annotations(place("second"))[HPARAMS]) == {"lr": 0.125}


async def test_a_trial_that_runs_again_and_whose_row_has_no_values_gets_some() -> None:
    case = Case(algorithm="tpe")
    case.job()
    case.sweep.put(Outcome(0, TrialState.FAILED, message="so said the status"))
    start = Start(case.state, case.sweeps, Studies())
    waiting(case, 0, "first")
    first = (await prepared(start, place("first")))[HPARAMS]
    waiting(case, 0, "second")
    assert (await prepared(start, place("second")))[HPARAMS] == first


async def test_a_suggestion_knows_what_had_ended_when_the_place_was_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[int] = []
    tell = TpeStudy.tell
    monkeypatch.setattr(
        TpeStudy, "tell", lambda study, ended: told.append(ended.trial) or tell(study, ended)
    )
    case = Case(algorithm="tpe")
    case.job()
    start = Start(case.state, case.sweeps, Studies())
    for trial in range(3):
        waiting(case, trial, f"p{trial}")
        await prepared(start, place(f"p{trial}"))
        assert told == list(range(trial))
        case.trials.end(case.sweep, Outcome(trial, TrialState.SUCCEEDED, 1.0))


@pytest.mark.parametrize("loaded", [True, False])
def test_nothing_starts_that_is_not_to_start(loaded: bool) -> None:
    case = Case(loaded=loaded, maxFailedTrials=0, failFastExitCodes=[9])
    case.job()
    if loaded:
        case.pod(1, message="", code=9)
    waiting(case, 0)
    with pytest.raises(NotPlaceableError, match="trial 0 is not to start"):
        Start(case.state, case.sweeps, Studies()).annotations(place())


def test_a_pod_of_a_job_that_is_no_segment_is_not_placed() -> None:
    case = Case()
    waiting(case, 0)
    with pytest.raises(NotPlaceableError, match="no segment"):
        Start(case.state, case.sweeps, Studies()).annotations(place())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OverflowError("Range exceeds valid bounds"), "spec.sweep.parameters: no values for"),
        (TpeMissingError("needs Optuna"), "spec.sweep.algorithm: no values for trial 0: needs"),
    ],
)
async def test_a_search_without_values_stops_alone_and_says_why(
    monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    def fails(self: TpeStudy, trial: int) -> None:
        raise error

    monkeypatch.setattr(TpeStudy, "ask", fails)
    case = Case(algorithm="tpe")
    changed: list[JobKey] = []
    case.job()
    waiting(case, 0)
    start = Start(case.state, case.sweeps, Studies(), changed=changed.append)
    with pytest.raises(NotPlaceableError, match=says):
        await prepared(start, place())
    assert case.sweep.adaptive.unsearchable.startswith(says)
    assert changed == [KEY]


async def test_a_sampler_that_hangs_holds_up_its_own_sweep_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hangs = threading.Event()
    real = TpeStudy.ask
    monkeypatch.setattr(studies, "ASK_SECONDS", 0.2)
    monkeypatch.setattr(TpeStudy, "ask", lambda study, trial: hangs.wait(30))
    case = Case(algorithm="tpe")
    case.job()
    for trial in range(2):
        waiting(case, trial)
    start = Start(case.state, case.sweeps, Studies())
    with pytest.raises(NotPlaceableError, match="no values for trial 0: no answer within 0.2 s"):
        await prepared(start, place("job-0"))
    monkeypatch.setattr(studies, "ASK_SECONDS", 30)
    monkeypatch.setattr(TpeStudy, "ask", real)
    assert "lr" in (await prepared(start, place("job-1")))[HPARAMS], "in another thread"
    hangs.set()


async def test_a_question_that_took_too_long_once_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hangs, asked, limits = threading.Event(), list[int](), list[asyncio.Timeout]()
    real, loop = TpeStudy.ask, asyncio.get_running_loop()

    def limit(seconds: float) -> asyncio.Timeout:
        limits.append(asyncio.timeout(seconds))
        return limits[-1]

    def ask(study: TpeStudy, trial: int) -> Any:
        asked.append(trial)
        if len(asked) == 1:  # its time is over now: to import what it needs takes longer at times
            loop.call_soon_threadsafe(limits[0].reschedule, 0)
            hangs.wait(30)
        return real(study, trial)

    monkeypatch.setattr(studies, "asyncio", SimpleNamespace(timeout=limit))
    monkeypatch.setattr(TpeStudy, "ask", ask)
    case = Case(algorithm="tpe")
    case.job()
    waiting(case, 0)
    start = Start(case.state, case.sweeps, Studies())
    assert "lr" in (await prepared(start, place("job-0")))[HPARAMS]
    assert (asked, case.sweep.adaptive.unsearchable) == ([0, 0], "")
    hangs.set()
