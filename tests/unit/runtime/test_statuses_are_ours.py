"""What somebody else writes into our statuses is written back, and obeyed by nobody."""

import asyncio
from itertools import chain, repeat
from typing import Any

import pytest
from tests.unit.runtime.jobs.test_reconcile import Case as ReconcileCase
from tests.unit.runtime.status_case import INTERVAL, JOB_PATH, KEY, PROJECT_PATH
from tests.unit.runtime.status_case import Case as StatusCase
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import (
    gpujob_body,
    half,
    make_gpujob,
    make_job,
    make_node,
    make_pod,
)

from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.runtime.informers.custom_resources import CustomResources, project_record

Json = dict[str, Any]
FORGED: tuple[Json, ...] = (
    {"phase": "Succeeded"},
    {"phase": "Failed", "reason": "ProgramFailed", "message": "no"},
    {"phase": "Suspended"},
    {"phase": "Running", "pods": {"pending": 9, "running": 9, "succeeded": 9, "failed": 9}},
    {"phase": "Running", "preemptedBy": "team-b/other", "evictions": 7, "lostGPUSeconds": 10**9},
    {"phase": "Pending", "reason": "Evicted", "message": "drained"},
    {"phase": "Pending", "reason": "PlacementRefused", "message": "a policy"},
    {"phase": "Running", "firstFailure": "index 0 failed"},
    {"phase": "Running", "queuePosition": 3, "allocatedGPU": "8", "node": "x"},
    {},
)


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_it_is_written_back_and_no_event_tells_of_it(forged: Json) -> None:
    @virtual
    async def written_back() -> None:
        case = StatusCase()
        async with case.running():
            case.pod(version=1)
            await asyncio.sleep(2 * INTERVAL)
            (said,), events = case.written(JOB_PATH)[-1:], list(case.events.said)
            whole = case.state.gpujobs[KEY].shown
            case.custom_resources.gpujob(gpujob_body(version=2, status=forged))
            case.state.projects.touched.clear()
            await asyncio.sleep(2 * INTERVAL)
            back = case.written(JOB_PATH)[-1]
            assert back is not said and case.events.said == events
            after = {k: v for k, v in {**forged, **back.body["status"]}.items() if v is not None}
            assert after == {k: v for k, v in whole.items() if v is not None}
            assert case.state.gpujobs[KEY].shown == case.state.gpujobs[KEY].status == whole

    written_back()


@virtual
async def test_what_passes_is_no_reason_to_let_it_stand() -> None:
    case = StatusCase()
    case.state.job_changed(make_job())
    case.state.pod_changed(make_pod(node="a", devices=half()))
    async with case.running():
        await asyncio.sleep(30)
        assert case.state.gpujobs[KEY].shown["reason"] == "Starting"
        case.custom_resources.gpujob(gpujob_body(version=2, status={"phase": "Succeeded"}))
        await asyncio.sleep(1)
        assert case.written(JOB_PATH)[-1].body["status"]["phase"] == "Pending"


@pytest.mark.parametrize("forged", FORGED, ids=str)
def test_nothing_is_made_or_ended_for_it(forged: Json) -> None:
    @virtual
    async def the_same() -> None:
        plain, told = ReconcileCase(), ReconcileCase()
        for case in (plain, told):
            case.state.job_changed(make_job())
            await case.handle()
        before = told.state.gpujobs[KEY].status
        resources = CustomResources(told.state, changed=told.queue.add)
        resources.gpujob(gpujob_body(version=2, status=forged))
        # A change of the spec brings the whole object with it.
        resources.gpujob(gpujob_body(version=3, status=forged, generation=2, priority=60))
        plain.state.gpujob_changed(make_gpujob(generation=2, priority=60))
        assert told.state.gpujobs[KEY].status == before
        for case in (plain, told):
            await case.handle()
        assert [(s.method, s.path, s.body) for s in told.client.sent] == [
            (s.method, s.path, s.body) for s in plain.client.sent
        ]
        assert not told.state.gpujobs[KEY].finished

    the_same()


@virtual
async def test_a_write_whose_answer_is_lost_is_known_by_its_echo() -> None:
    case = StatusCase()
    async with case.running():
        await asyncio.sleep(1)
        case.answers = repeat(errors.Unavailable("no answer"))
        case.state.job_changed(make_job(version=2, ended="Complete", succeeded=1))
        await asyncio.sleep(INTERVAL + 1)
        assert case.finished == []
        (lost,) = case.written(JOB_PATH)[-1:]
        shown = {**case.state.gpujobs[KEY].shown, **lost.body["status"]}
        shown = {name: told for name, told in shown.items() if told is not None}
        case.answers = None
        case.custom_resources.gpujob(gpujob_body(version=2, status=shown))
        await asyncio.sleep(INTERVAL + 1)
    assert case.finished == [KEY]
    assert [reason for _, reason, _ in case.events.said].count("Succeeded") == 1


@virtual
async def test_numbers_of_a_project_are_written_back() -> None:
    case = StatusCase()
    async with case.running():
        await asyncio.sleep(1)
        told = case.state.projects.statuses
        body = {
            "metadata": {"name": "team-a", "uid": "uid-team-a", "resourceVersion": "9"},
            "spec": {"namespaces": ["team-a"], "quota": 8},
            "status": {"allocatedGPU": "7", "jobs": {"running": 9}},
        }
        record = project_record(body)
        case.custom_resources.project(body)
        before = len(case.written(PROJECT_PATH))
        await asyncio.sleep(2 * INTERVAL)
        assert len(case.written(PROJECT_PATH)) > before
        assert told[record.project.name]["allocatedGPU"] == "0"


@pytest.mark.parametrize("forged", [*FORGED, {"queuePosition": 1}], ids=str)
def test_who_never_stops_gets_one_answer_a_second_and_the_last_word_is_ours(forged: Json) -> None:
    """Both of a job that waits and of one whose pod was placed meanwhile."""

    @virtual
    async def one_a_second() -> None:
        case = StatusCase(seconds=1.0)
        case.waits()
        version = 2
        async with case.running():
            await asyncio.sleep(2)
            for placed in (False, True):
                if placed:
                    case.planning.waits.clear()
                    case.state.job_changed(make_job())
                    case.state.pod_changed(make_pod(node="a", devices=half()))
                before = len(case.written(JOB_PATH))
                for number in range(200):
                    told = {**case.state.gpujobs[KEY].shown, **forged, "evictions": number + 1}
                    if forged.keys() == {"queuePosition"}:
                        told = {**case.state.gpujobs[KEY].shown, "queuePosition": number + 2}
                    version += 1
                    case.custom_resources.gpujob(gpujob_body(version=version, status=told))
                    await asyncio.sleep(0.3)
                assert 30 <= len(case.written(JOB_PATH)) - before <= 61, "in 60 s"
                await asyncio.sleep(1.5)
                shown = case.state.gpujobs[KEY].shown
                assert shown == case.state.gpujobs[KEY].status
                assert shown["reason"] == ("Starting" if placed else "WaitingForGPU")
                assert "evictions" not in shown and shown.get("queuePosition") in (1, None)

    one_a_second()


async def slow_answer() -> Json:
    await asyncio.sleep(3)
    return {}


@virtual
async def test_what_came_after_a_write_whose_answer_is_slow_is_written_back() -> None:
    """A write of before that was held up on its way is shown first, and then ours is answered."""
    case = StatusCase()
    async with case.running():
        case.pod(version=1)
        await asyncio.sleep(2 * INTERVAL)
        running = dict(case.state.gpujobs[KEY].shown)
        case.answers = chain([slow_answer()], repeat({}))
        case.state.job_changed(make_job(version=2, ended="Complete", succeeded=1))
        await asyncio.sleep(1)
        (ended,) = case.written(JOB_PATH)[-1:]
        late = {**running, **ended.body["status"], "pods": running["pods"], "phase": "Running"}
        case.custom_resources.gpujob(gpujob_body(version=3, status=late))
        await asyncio.sleep(2 * INTERVAL)
        back = case.written(JOB_PATH)[-1]
        assert back is not ended
        assert back.body["status"] == {"phase": "Succeeded", "pods": ended.body["status"]["pods"]}
        assert case.state.gpujobs[KEY].shown["phase"] == "Succeeded"
    assert [reason for _, reason, _ in case.events.said].count("Succeeded") == 1


@virtual
async def test_what_came_after_a_write_of_a_project_whose_answer_is_slow_is_written_back() -> None:
    case = StatusCase()
    async with case.running():
        await asyncio.sleep(1)
        zero = dict(case.state.projects.statuses[ProjectName("team-a")])
        case.state.nodes.changed(make_node("a"))
        await asyncio.sleep(2 * INTERVAL)
        case.client.reply = lambda sent: slow_answer() if sent.path == PROJECT_PATH else {}
        case.pod(version=1)
        await asyncio.sleep(1)
        case.client.reply = lambda sent: {}
        assert case.written(PROJECT_PATH)[-1].body["status"]["allocatedGPU"] == "0.5"
        case.custom_resources.project(
            {
                "metadata": {"name": "team-a", "uid": "uid-team-a", "resourceVersion": "9"},
                "spec": {"namespaces": ["team-a"], "quota": 8},
                "status": zero,
            }
        )
        assert case.state.projects.statuses[ProjectName("team-a")] == zero
        await asyncio.sleep(3 * INTERVAL)
        assert case.state.projects.statuses[ProjectName("team-a")]["allocatedGPU"] == "0.5"
        told = [sent.body["status"].get("allocatedGPU") for sent in case.written(PROJECT_PATH)]
        assert told[-2:] == ["0.5", "0.5"], "the second one puts it right"


ENDED = {"phase": "Succeeded", "message": "x", "conditions": [{"type": "Complete"}]}
FAILED = {"phase": "Failed", "reason": "ProgramFailed", "message": "it was so"}


@pytest.mark.parametrize(
    ("status", "jobs", "spec", "believed"),
    [
        (ENDED, (), {}, True),  # it is gone
        (ENDED, (make_job(ended="Complete", succeeded=1),), {}, True),
        (FAILED, (make_job(ended="Failed"),), {}, True),
        (FAILED, (make_job(suspend=True),), {}, True),  # as we leave those that have not ended
        (ENDED, (make_job(owner_uid="earlier"),), {}, True),
        (ENDED, (make_job(deleting=True),), {}, True),
        (ENDED, (make_job(),), {}, False),
        (FAILED, (make_job(),), {}, False),
        (ENDED, (make_job(parallelism=0),), {}, False),  # it waits for a place
        (ENDED, (make_job(suspend=True),), {"suspend": True}, False),  # by its owner
    ],
)
def test_an_end_that_was_found_is_believed_unless_a_job_says_otherwise(
    status: Json, jobs: tuple[Job, ...], spec: Json, believed: bool
) -> None:
    @virtual
    async def taken_over() -> None:
        case = ReconcileCase(status=status, **spec)
        for job in jobs:
            case.state.job_changed(job)
        await case.handle()
        job = case.state.gpujobs[KEY]
        assert job.finished == believed
        assert job.shown == status, "what is there is put right by the writer"
        if not believed:
            assert KEY in case.state.changes.touched and "ProgramFailed" not in str(job.status)
            assert "Complete" not in str(job.status)
            suspends = [s.body["spec"].get("suspend") for s in case.client.of("PATCH")]
            assert True not in suspends, "nobody but its user suspends it"

    taken_over()
