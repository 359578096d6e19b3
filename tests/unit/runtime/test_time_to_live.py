"""Finished GPUJobs are deleted when their time to live is over."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import CONFLICT, NOT_FOUND, Sent
from tests.unit.runtime.jobs.test_reconcile import ENDED_AT, KEY, Case
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import make_job

from gpu_scheduler.kube import errors


def told(kind: str) -> dict[str, Any]:
    """The status of a job whose end was written."""
    condition = {"type": kind, "status": "True", "lastTransitionTime": ENDED_AT}
    return {"phase": "Succeeded" if kind == "Complete" else "Failed", "conditions": [condition]}


@virtual
async def test_a_finished_job_is_deleted_when_its_time_is_over_and_not_before() -> None:
    case = Case(ttlSecondsAfterFinished=60, status=told("Complete"))
    case.state.job_changed(make_job(ended="Complete", ended_at=ENDED_AT))
    case.now += 20
    await case.handle()
    assert case.client.sent == []
    assert await case.keys_within(100) == [40.0]
    case.now += 40
    await case.handle()
    assert case.client.sent == [
        Sent(
            "DELETE",
            "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs/job",
            {"uid": "gpujob-uid", "propagation": "Background"},
        )
    ]


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_the_end_is_known_from_the_status_when_the_job_is_gone(kind: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(ttlSecondsAfterFinished=60, status=told(kind))
        case.now += 61
        await case.handle()
        assert case.methods == ["DELETE"]

    run()


@virtual
async def test_without_a_time_to_live_it_stays() -> None:
    case = Case(status=told("Complete"))
    case.now += 1e9
    await case.handle()
    assert (case.client.sent, await case.keys_within(100)) == ([], [])


@virtual
async def test_its_end_is_told_before_it_goes() -> None:
    case = Case(ttlSecondsAfterFinished=0, status={"phase": "Running"})
    case.state.job_changed(make_job(ended="Complete", ended_at=ENDED_AT))
    await case.handle()
    assert case.client.sent == []
    case.state.gpujobs[KEY].status = told("Complete")  # what the status writer does, and says so
    await case.handle()
    assert case.methods == ["DELETE"]


@pytest.mark.parametrize("answer", [NOT_FOUND, CONFLICT])
def test_one_that_somebody_else_has_deleted_already_is_no_error(answer: errors.ApiError) -> None:
    @virtual
    async def run() -> None:
        case = Case(ttlSecondsAfterFinished=0, status=told("Complete"))
        case.answers = {"DELETE": answer}
        await case.handle()
        assert await case.keys_within(100) == []

    run()


@pytest.mark.parametrize("ahead", [3600.0, 86_400.0, 1e9])
def test_an_end_of_the_future_counts_from_when_it_is_seen(ahead: float) -> None:
    """It was told by a leader before us, whose clock was ahead."""

    @virtual
    async def run() -> None:
        case = Case(ttlSecondsAfterFinished=60, status=told("Complete"))
        case.now -= ahead
        await case.handle()
        case.now += 59
        await case.handle()
        assert case.client.sent == []
        case.now += 1
        await case.handle()
        assert case.methods == ["DELETE"]

    run()
