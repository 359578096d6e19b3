"""Changes of a GPUJob that its Job follows, and those that the API server refuses."""

from typing import Any

import pytest
from tests.unit.runtime.fake_client import UNPROCESSABLE
from tests.unit.runtime.job_writing import place_prospective
from tests.unit.runtime.jobs.test_reconcile import KEY, Case
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.state.builders import make_gpujob, make_job

from gpu_scheduler.kube import errors
from gpu_scheduler.kube.objects import StatusCause, StatusDetails


@virtual
async def test_parallelism_is_followed_as_places_are_found() -> None:
    case = Case(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=1, completions=8))
    case.answers = {"PATCH": make_job(parallelism=3, completions=8, version=2)}
    await case.handle()
    await case.handle()
    (patch,) = case.client.sent
    assert patch.path == "/apis/batch/v1/namespaces/team-a/jobs/job"
    assert patch.body == {"metadata": {"uid": "job-uid"}, "spec": {"parallelism": 3}}


@virtual
async def test_less_parallelism_is_followed_at_once() -> None:
    case = Case(parallelism=1, completions=8)
    case.state.job_changed(make_job(parallelism=3, completions=8))
    case.answers = {"PATCH": make_job(parallelism=1, completions=8, version=2)}
    await case.handle()
    (patch,) = case.client.sent
    assert patch.body["spec"] == {"parallelism": 1}


@virtual
async def test_a_suspended_job_goes_on_as_wide_as_it_has_places() -> None:
    case = Case(parallelism=3, completions=8, suspend=True)
    case.state.job_changed(make_job(parallelism=2, completions=8))
    case.answers = {
        "PATCH": make_job(parallelism=2, completions=8, suspend=True, version=2),
        "GET": {},
    }
    await case.handle()
    (patch,) = case.client.sent
    assert patch.body["spec"] == {"suspend": True}
    case.state.gpujob_changed(make_gpujob(parallelism=3, completions=8, generation=2))
    await case.reconciler.handle(KEY)
    assert case.client.of("PATCH") == [patch], "not before a pod of it has a place"
    await case.handle()
    assert case.client.of("PATCH")[-1].body["spec"] == {"suspend": False, "parallelism": 3}


@virtual
async def test_nothing_is_rendered_or_asked_about_a_job_that_is_as_it_should_be() -> None:
    case = Case(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=3, completions=8))
    for _ in range(3):
        await case.handle()
    assert (case.client.sent, case.acceptance.rendered_times) == ([], 1), "when it is accepted"


@pytest.mark.parametrize(
    "answer",
    [
        errors.Forbidden(403, "Forbidden", "no more than 2 pods"),
        UNPROCESSABLE,
        errors.BadRequest(400, "BadRequest", "no such number"),
        errors.TooLarge(413, "", "too large"),
        errors.Refused(405, "MethodNotAllowed", "not here"),
    ],
    ids=["a policy", "validation", "what cannot be read", "its size", "any other refusal"],
)
def test_a_change_that_the_server_refuses_says_so_and_is_tried_again(
    answer: errors.ApiError,
) -> None:
    @virtual
    async def run() -> None:
        case = Case(parallelism=3, completions=8)
        case.state.job_changed(make_job(parallelism=1, completions=8))
        case.answers = {"PATCH": answer}
        case.state.changes.touched.clear()
        await case.handle()
        said = f"spec.parallelism: the API server refuses the change of Job job: {answer.message}"
        job = case.state.gpujobs[KEY]
        assert (job.complaint, case.state.changes.touched) == (said, {KEY})
        assert job.problem == ""  # what runs on, and fails or gives way, is placed again
        assert await case.keys_within(60) == [30.0]
        case.answers = {"PATCH": make_job(parallelism=3, completions=8, version=2)}
        await case.handle()
        assert case.state.gpujobs[KEY].complaint == ""

    run()


@virtual
async def test_nobody_goes_again_for_pods_for_which_a_job_may_not_be_made_wider() -> None:
    case = Case(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=0, completions=8))
    await case.handle()
    doubts = case.state.waiting.doubts
    assert place_prospective(case.state) and KEY not in doubts
    case.answers = {"PATCH": UNPROCESSABLE}
    await case.handle()
    known = doubts.of(KEY)
    assert known is not None and "refuses the change" in known.why and not doubts.held_back(KEY)


@virtual
async def test_a_refused_change_is_asked_for_ever_more_seldom_whoever_looks_at_the_job() -> None:
    case = Case(parallelism=3, completions=8)
    case.state.job_changed(make_job(parallelism=1, completions=8))
    case.answers = {"PATCH": UNPROCESSABLE}
    for _ in range(1200):  # a trial ends, a pod is placed: every second
        await case.handle()
        await case.keys_within(1)
    assert case.methods.count("PATCH") == 6  # after 30, 90, 210, 450 and 930 s
    assert "refuses the change" in case.state.gpujobs[KEY].complaint
    case.state.gpujob_changed(make_gpujob(parallelism=2, completions=8, generation=2))
    await case.handle()
    assert case.methods.count("PATCH") == 7, "it is another change"


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
    assert case.state.jobs.believed == {}


def parallelism(patch: Any) -> int:
    return int(patch.body["spec"]["parallelism"])


@virtual
async def test_a_gang_needs_all_of_its_pods() -> None:
    case = Case(parallelism=500, gpu=1, gang=True)
    await case.handle()
    (made,) = [sent for sent in case.client.of("POST") if sent.path.endswith("/jobs")]
    assert parallelism(made) == 500
