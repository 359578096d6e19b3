"""A trial that was told to stop is over: by itself, or after its grace."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.unit.runtime.fake_client import AWAY, BUSY, NOT_FOUND
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_job
from tests.unit.sweeps.runtime.pruned import GRACE_SECONDS, Case, told

from gpu_scheduler.api.names import FIRST_TRIAL, HPARAMS, SEGMENT, TRIAL
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.kube.times import timestamp
from gpu_scheduler.sweeps.core.outcome import TrialState
from gpu_scheduler.sweeps.runtime.pruning import GOODBYE_SECONDS
from gpu_scheduler.sweeps.runtime.trials import Trials


async def prune(case: Case, trial: int = 1) -> None:
    """Tell a trial to stop."""
    await case.report(0, 0.1)
    assert (await case.report(trial, 0.9)).body == {"stop": True}


@virtual
async def test_a_trial_that_stops_by_itself_is_left_alone() -> None:
    case = Case()
    async with Running(case.pruning.run()):
        await prune(case)
        await asyncio.sleep(GRACE_SECONDS - 1)
        case.see(case.pod(1, version=2, phase="Succeeded"))
        await asyncio.sleep(100)
    assert case.evictions == []


@virtual
async def test_a_trial_that_runs_on_is_ended_after_its_grace_within_seconds() -> None:
    case = Case()
    async with Running(case.pruning.run()):
        await prune(case)
        await asyncio.sleep(GRACE_SECONDS - 1)
        assert case.evictions == []
        await asyncio.sleep(2)
        assert case.evictions == ["job-1"]
        case.see(case.pod(1, version=2, deleting=True))
        await asyncio.sleep(100)
    (eviction,) = case.client.of("POST", "/eviction")
    assert eviction.body["deleteOptions"]["gracePeriodSeconds"] == GOODBYE_SECONDS
    assert case.pruning.ended == 1
    assert [reason for _, reason, _ in case.events.said] == ["TrialEnded"]


@pytest.mark.parametrize("trouble", [AWAY, BUSY])
def test_an_eviction_that_fails_is_tried_again(trouble: object) -> None:
    @virtual
    async def again() -> None:
        case = Case()
        async with Running(case.pruning.run()):
            await prune(case)
            case.answer = trouble
            await asyncio.sleep(GRACE_SECONDS + 5)
            case.answer = {}
            await asyncio.sleep(10)
            case.see(case.pod(1, version=2, deleting=True))
            await asyncio.sleep(60)
        assert len(case.evictions) >= 2
        assert case.pruning.ended >= 1

    again()


@virtual
async def test_a_pod_that_went_meanwhile_is_no_trouble() -> None:
    case = Case()
    async with Running(case.pruning.run()):
        await prune(case)
        case.answer = NOT_FOUND
        await asyncio.sleep(GRACE_SECONDS + 1)
        case.state.pod_gone(PodUID("uid-job-1"))
        await asyncio.sleep(60)
    assert case.evictions == ["job-1"]
    assert case.pruning.ended == 0


@virtual
async def test_a_pod_that_is_going_is_not_evicted_again() -> None:
    case = Case()
    async with Running(case.pruning.run()):
        await prune(case)
        case.see(case.pod(1, version=2, deleting=True))
        await asyncio.sleep(100)
    assert case.evictions == []


@pytest.mark.parametrize(("ago", "waits"), [(0, True), (GRACE_SECONDS + 1, False), (-3600, True)])
def test_a_new_leader_counts_the_grace_from_when_it_was_told(ago: int, waits: bool) -> None:
    @virtual
    async def counts() -> None:
        case, now = Case(), datetime(2026, 3, 1, 12, tzinfo=UTC)
        case.pruning._now = lambda: now
        at = timestamp(now - timedelta(seconds=ago))
        case.see(case.pod(1, version=2, conditions=(told(at),)))
        async with Running(case.pruning.run()):
            await asyncio.sleep(1)
            assert bool(case.evictions) != waits
            await asyncio.sleep(GRACE_SECONDS + 1)
        assert set(case.evictions) == {"job-1"}

    counts()


def answers_later(case: Case) -> asyncio.Event:
    """Writes are answered once it is set."""
    gate = asyncio.Event()

    async def slow() -> Any:
        await gate.wait()
        return {}

    case.answer = lambda sent: slow()
    return gate


@virtual
async def test_reports_that_come_at_once_write_one_mark() -> None:
    case = Case()
    await case.report(0, 0.1)
    gate = answers_later(case)
    answers = [asyncio.ensure_future(case.report(1, 0.9, step=step)) for step in (1, 2, 3)]
    await asyncio.sleep(1)
    gate.set()
    assert [answer.body for answer in await asyncio.gather(*answers)] == [{"stop": True}] * 3
    assert case.marks == ["job-1"]


@virtual
async def test_no_report_waits_long_for_a_mark() -> None:
    case = Case()
    await case.report(0, 0.1)
    gate = answers_later(case)
    began = asyncio.get_running_loop().time()
    assert (await case.report(1, 0.9)).body == {"stop": False}
    assert asyncio.get_running_loop().time() - began < 5
    gate.set()
    await asyncio.sleep(0.1)
    assert (await case.report(1, 0.9, step=2)).body == {"stop": True}
    assert case.marks == ["job-1"]


@virtual
async def test_a_pod_whose_sweep_is_gone_is_left_to_those_who_delete_it() -> None:
    case = Case()
    async with Running(case.pruning.run()):
        await prune(case)
        del case.state.gpujobs[case.sweep.key]
        await asyncio.sleep(100)
    assert case.evictions == []


def segment(**status: Any) -> Job:
    """The Job of the first segment."""
    made = make_job("job-s0", owner="job", completions=8, **status)
    marked = msgspec.structs.replace(made.metadata, annotations={SEGMENT: "0", FIRST_TRIAL: "0"})
    return msgspec.structs.replace(made, metadata=marked)


@pytest.mark.parametrize("mark", [(told(),), ()], ids=["told", "not told"])
@pytest.mark.parametrize(
    ("phase", "otherwise"),
    [("Succeeded", TrialState.RESULT_MISSING), ("Failed", TrialState.FAILED)],
)
def test_a_new_leader_knows_from_the_pod_that_a_trial_was_pruned(
    phase: str, otherwise: TrialState, mark: tuple[dict[str, str], ...]
) -> None:
    @virtual
    async def knows() -> None:
        case = Case()
        trials = Trials(
            case.state,
            case.sweeps,
            changed=lambda key: None,
            clock=clock,
        )
        case.state.job_changed(segment(version=2))
        ended = case.pod(
            1,
            version=2,
            phase=phase,
            conditions=mark,
            annotations_={TRIAL: "1", HPARAMS: '{"lr": 0.5}'},
        )
        record = case.state.pod_changed(ended)
        assert record is not None
        trials.observe(ended, record)
        given_up = segment(version=3, failed_indexes="1" if phase == "Failed" else "")
        seen = case.state.job_changed(given_up)
        assert seen is not None
        trials.job_changed(seen)
        outcome = case.sweep.table.get(1)
        assert outcome is not None
        assert outcome.state is (TrialState.PRUNED if mark else otherwise)

    knows()
