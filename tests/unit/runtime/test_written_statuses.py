"""What is written of jobs and projects, and when it is told of."""

import asyncio

from tests.unit.runtime.status_case import INTERVAL, JOB_PATH, KEY, PROJECT_PATH, Case
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import gpujob_body, half, make_job, make_node, make_pod

from gpu_scheduler.core.model.decision import Reason, Wait
from gpu_scheduler.core.model.request import JobKey, PodUID, ProjectName
from gpu_scheduler.runtime.eviction.preemption import Preempted


@virtual
async def test_what_was_set_aside_says_so_in_a_condition() -> None:
    case = Case()
    case.planning.waits[KEY] = Wait(KEY, Reason.INVALID, "set aside: why", 1)
    case.planning.quarantine.why = {KEY: "set aside: why", "team-a": "set aside: too"}
    async with case.running():
        await asyncio.sleep(0.2)
    for path, why in ((JOB_PATH, "set aside: why"), (PROJECT_PATH, "set aside: too")):
        (write,) = case.written(path)
        told = write.body["status"]["conditions"][-1]
        assert (told["type"], told["status"], told["message"]) == ("SetAside", "True", why)
    assert case.written()[0].body["status"]["reason"] == "Invalid"


@virtual
async def test_a_project_counts_a_job_that_began_to_run_although_no_share_changed() -> None:
    case = Case()
    case.pod(version=1)
    case.state.pod_changed(make_pod("job-0", version=2, node="a", devices=half(), phase="Pending"))
    async with case.running():
        await asyncio.sleep(2 * INTERVAL)
        version = case.state.changes.version
        case.pod(version=3)  # it holds what it held: no plan would be another
        assert case.state.changes.version == version
        await asyncio.sleep(3 * INTERVAL)
        assert case.written(PROJECT_PATH)[-1].body["status"]["jobs"]["running"] == 1
        # A watch that lags may show the job as it was, and then as it is.
        case.custom_resources.gpujob(gpujob_body(version=2, status={"phase": "Pending"}))
        case.state.projects.touched.update(case.state.projects.records)
        await asyncio.sleep(3 * INTERVAL)
        case.custom_resources.gpujob(gpujob_body(version=3, status={"phase": "Running"}))
        await asyncio.sleep(3 * INTERVAL)
    assert case.written(PROJECT_PATH)[-1].body["status"]["jobs"]["running"] == 1


@virtual
async def test_the_end_is_written_told_and_followed_up() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(1)
        case.state.job_changed(make_job(version=2, ended="Complete", succeeded=1))
        await asyncio.sleep(INTERVAL + 1)
    assert case.written()[-1].body["status"]["phase"] == "Succeeded"
    assert case.finished == [KEY]
    assert ("job", "Succeeded", "every index is done") in case.events.said


@virtual
async def test_a_reason_is_told_when_it_changes() -> None:
    case = Case()
    async with case.running():
        case.planning.waits[KEY] = Wait(KEY, Reason.WAITING_FOR_GPU, "no GPU is free", 2)
        await asyncio.sleep(1)
        case.planning.waits[KEY] = Wait(KEY, Reason.WAITING_FOR_GPU, "one GPU is free", 1)
        case.state.changes.touched.add(KEY)
        await asyncio.sleep(INTERVAL + 1)
    assert len(case.written()) == 2
    assert case.events.said == [("job", "WaitingForGPU", "no GPU is free")]


@virtual
async def test_a_project_shows_what_its_pods_hold() -> None:
    case = Case()
    case.state.nodes.changed(make_node("a"))
    async with case.running():
        await asyncio.sleep(1)
        case.pod(version=1)
        await asyncio.sleep(INTERVAL + 1)
    assert case.written(PROJECT_PATH)[-1].body["status"]["allocatedGPU"] == "0.5"


@virtual
async def test_projects_wait_for_the_first_plan() -> None:
    case = Case()
    case.planning.cycles = 0
    async with case.running():
        await asyncio.sleep(1)
        assert case.written(PROJECT_PATH) == []
        case.planning.cycles = 1
        await asyncio.sleep(1)
        assert len(case.written(PROJECT_PATH)) == 1


@virtual
async def test_who_had_to_give_way_is_said_once_and_forgotten_when_its_pods_are_back() -> None:
    case = Case()
    case.pod(1)
    case.preemption.known[KEY] = Preempted(JobKey("team-b/urgent"), PodUID("uid-job-0"))
    case.planning.waits = {}
    async with case.running():
        await asyncio.sleep(INTERVAL)
        status = case.written()[-1].body["status"]
        assert (status["reason"], status["preemptedBy"]) == ("Preempted", "team-b/urgent")
        assert case.events.said == []  # that was told when it was decided
        case.state.pod_gone(PodUID("uid-job-0"))
        case.state.pod_changed(
            make_pod("job-0", uid="again", version=9, node="a", devices=half(), phase="Running")
        )
        await asyncio.sleep(2 * INTERVAL)
        assert case.written()[-1].body["status"]["preemptedBy"] is None
        assert case.preemption.known == {}


@virtual
async def test_a_projects_fair_share_follows_the_plan() -> None:
    case = Case()
    async with case.running():
        await asyncio.sleep(1)
        case.planning.shares_milli = {ProjectName("team-a"): 2667}
        await asyncio.sleep(2 * INTERVAL)
        assert case.written(PROJECT_PATH)[-1].body["status"]["fairShareGPU"] == "2.667"


@virtual
async def test_a_job_that_only_says_that_it_is_ours_is_told_of_once() -> None:
    case = Case()
    async with case.running():
        for number in range(3):
            case.state.job_changed(make_job(f"forged-{number}", uid=str(number), owner="job"))
            await asyncio.sleep(2 * INTERVAL)
    ((name, reason, message),) = case.events.said
    assert (name, reason) == ("job", "StrangeJob") and "forged-0" in message
