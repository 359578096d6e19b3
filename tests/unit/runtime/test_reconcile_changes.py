"""Changes of a GPUJob that its Job follows, and those that the API server refuses."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import UNPROCESSABLE
from tests.unit.runtime.test_reconcile import KEY, Case
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import make_job

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusCause, StatusDetails


@virtual
async def test_parallelism_and_suspend_are_followed() -> None:
    case = Case(parallelism=3, completions=8, suspend=True)
    case.world.job_changed(make_job(parallelism=1, completions=8))
    case.answers = {"PATCH": make_job(parallelism=3, completions=8, suspend=True, version=2)}
    await case.handle()
    await case.handle()
    (patch,) = case.client.sent
    assert patch.path == "/apis/batch/v1/namespaces/team-a/jobs/job"
    assert patch.body == {
        "metadata": {"uid": "job-uid"},
        "spec": {"parallelism": 3, "suspend": True},
    }


@pytest.mark.parametrize(
    "answer",
    [errors.Forbidden(403, "Forbidden", "no more than 2 pods"), UNPROCESSABLE],
    ids=["a policy", "validation"],
)
def test_a_change_that_the_server_refuses_says_so_and_is_tried_again(
    answer: errors.ApiError,
) -> None:
    @virtual
    async def run() -> None:
        case = Case(parallelism=3, completions=8)
        case.world.job_changed(make_job(parallelism=1, completions=8))
        case.answers = {"PATCH": answer}
        case.world.touched.clear()
        await case.handle()
        said = f"spec.parallelism: the API server refuses the change of Job job: {answer.message}"
        job = case.world.gpujobs[KEY]
        assert (job.complaint, case.world.touched) == (said, {KEY})
        assert job.problem == ""  # what runs on, and fails or gives way, is placed again
        assert await case.keys_within(60) == [30.0]
        case.answers = {"PATCH": make_job(parallelism=3, completions=8, version=2)}
        await case.handle()
        assert case.world.gpujobs[KEY].complaint == ""

    run()


@pytest.mark.parametrize("then", ["ends", "is made anew"])
def test_a_refused_change_is_forgotten_when_its_job(then: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(parallelism=3, completions=8)
        case.world.job_changed(make_job(parallelism=1, completions=8))
        case.answers = {"PATCH": UNPROCESSABLE, "POST": make_job(uid="new", parallelism=3)}
        await case.handle()
        assert case.world.gpujobs[KEY].complaint != ""
        if then == "ends":
            case.world.job_changed(make_job(completions=8, ended="Complete", version=2))
        else:
            case.world.job_gone("job-uid")
        await case.handle()
        assert case.world.gpujobs[KEY].complaint == ""

    run()


@virtual
async def test_a_change_for_another_job_of_that_name_is_nobodys_mistake() -> None:
    case = Case(parallelism=3, completions=8)
    case.world.job_changed(make_job(parallelism=1, completions=8))
    other = StatusDetails(causes=(StatusCause(field="metadata.uid"),))
    case.answers = {"PATCH": errors.Unprocessable(422, "Invalid", "told so", other)}
    await case.handle()
    assert case.world.gpujobs[KEY].complaint == ""
    (again,) = await case.keys_within(2)
    assert 0 < again < 1


@virtual
async def test_a_job_that_goes_while_it_is_patched_is_not_believed_to_be_there() -> None:
    case = Case(suspend=True)
    case.world.job_changed(make_job())

    def deleted_before_the_answer(sent: Any) -> Any:
        case.world.job_gone("job-uid")
        return make_job(suspend=True, version=2)

    case.client.reply = deleted_before_the_answer
    await case.handle()
    assert case.world.jobs == {}
