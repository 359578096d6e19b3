"""Changes of a GPUJob that its Job follows, and those that the API server refuses."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import UNPROCESSABLE
from tests.unit.runtime.test_reconcile import KEY, Case
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import half, make_job, make_node, make_pod, make_project

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusCause, StatusDetails


@virtual
async def test_parallelism_and_suspend_are_followed() -> None:
    case = Case(parallelism=3, completions=8, suspend=True)
    case.state.job_changed(make_job(parallelism=1, completions=8))
    case.answers = {"PATCH": make_job(parallelism=3, completions=8, suspend=True, version=2)}
    await case.handle()
    await case.handle()
    (patch,) = case.client.sent
    assert patch.path == "/apis/batch/v1/namespaces/team-a/jobs/job"
    assert patch.body == {
        "metadata": {"uid": "job-uid"},
        "spec": {"parallelism": 3, "suspend": True},
    }


@virtual
async def test_nothing_is_rendered_or_asked_about_a_job_that_is_as_it_should_be() -> None:
    case = Case(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=3, completions=8))
    for _ in range(3):
        await case.handle()
    assert (case.client.sent, case.acceptance.rendered_times) == ([], 0)


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
        case.state.job_changed(make_job(parallelism=1, completions=8))
        case.answers = {"PATCH": answer}
        case.state.touched.clear()
        await case.handle()
        said = f"spec.parallelism: the API server refuses the change of Job job: {answer.message}"
        job = case.state.gpujobs[KEY]
        assert (job.complaint, case.state.touched) == (said, {KEY})
        assert job.problem == ""  # what runs on, and fails or gives way, is placed again
        assert await case.keys_within(60) == [30.0]
        case.answers = {"PATCH": make_job(parallelism=3, completions=8, version=2)}
        await case.handle()
        assert case.state.gpujobs[KEY].complaint == ""

    run()


@pytest.mark.parametrize("then", ["ends", "is made anew"])
def test_a_refused_change_is_forgotten_when_its_job(then: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(parallelism=3, completions=8)
        case.state.job_changed(make_job(parallelism=1, completions=8))
        case.answers = {"PATCH": UNPROCESSABLE, "POST": make_job(uid="new", parallelism=3)}
        await case.handle()
        assert case.state.gpujobs[KEY].complaint != ""
        if then == "ends":
            case.state.job_changed(make_job(completions=8, ended="Complete", version=2))
        else:
            case.state.job_gone("job-uid")
        await case.handle()
        assert case.state.gpujobs[KEY].complaint == ""

    run()


@virtual
async def test_a_change_for_another_job_of_that_name_is_nobodys_mistake() -> None:
    case = Case(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=1, completions=8))
    other = StatusDetails(causes=(StatusCause(field="metadata.uid"),))
    case.answers = {"PATCH": errors.Unprocessable(422, "Invalid", "told so", other)}
    await case.handle()
    assert case.state.gpujobs[KEY].complaint == ""
    (again,) = await case.keys_within(2)
    assert 0 < again < 1


@virtual
async def test_a_job_that_goes_while_it_is_patched_is_not_believed_to_be_there() -> None:
    case = Case(suspend=True)
    case.state.job_changed(make_job())

    def deleted_before_the_answer(sent: Any) -> Any:
        case.state.job_gone("job-uid")
        return make_job(suspend=True, version=2)

    case.client.reply = deleted_before_the_answer
    await case.handle()
    assert case.state.jobs == {}


def width(patch: Any) -> int:
    return int(patch.body["spec"]["parallelism"])


@virtual
async def test_a_job_is_as_wide_as_its_project_and_the_cluster_allow_and_grows_with_them() -> None:
    case = Case(parallelism=100_000, gpu=1)
    case.state.node_changed(make_node("a"))
    await case.handle()
    (made,) = case.client.of("POST")
    assert width(made) == 2 + 20
    case.state.job_changed(make_job(parallelism=22, completions=100_000, version=7))
    await case.handle()
    assert case.client.of("PATCH") == []
    assert await case.keys_within(61) == [60.0]
    for number in range(30):
        case.state.node_changed(make_node(f"more-{number}"))
    await case.handle()
    (grown,) = case.client.of("PATCH")
    assert width(grown) == 62 + 31
    case.state.project_changed(make_project(limit_milli=4000))
    case.state.job_changed(make_job(parallelism=93, completions=100_000, version=9))
    await case.handle()
    assert width(case.client.of("PATCH")[-1]) == 4 + 20


@virtual
async def test_a_job_is_not_made_narrower_than_its_pods_that_have_a_place() -> None:
    case = Case(parallelism=100_000, gpu=0.5)
    case.state.node_changed(make_node("a"))
    case.state.project_changed(make_project(limit_milli=1000))
    case.state.job_changed(make_job(parallelism=200, completions=100_000))
    for index in range(60):
        case.state.pod_changed(
            make_pod(f"job-{index}", index=index, node="a", grants=half(), phase="Running")
        )
    await case.handle()
    (patch,) = case.client.of("PATCH")
    assert width(patch) == 60


@virtual
async def test_a_gang_needs_all_of_its_pods() -> None:
    case = Case(parallelism=500, gpu=1, gang=True)
    case.state.node_changed(make_node("a"))
    await case.handle()
    (made,) = [sent for sent in case.client.of("POST") if sent.path.endswith("/jobs")]
    assert width(made) == 500
