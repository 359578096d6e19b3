"""From a GPUJob to its Job, from whatever state the cluster is in."""

import asyncio
from collections.abc import Container
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.runtime.fake_client import (
    AWAY,
    CONFLICT,
    NOT_LEADER,
    UNPROCESSABLE,
    FakeClient,
)
from tests.unit.runtime.job_writing import place_prospective, reconciler
from tests.unit.runtime.virtual_loop import Running, clock, virtual
from tests.unit.state.builders import make_gpujob, make_job, make_project

from gpu_scheduler.api.names import LABEL_JOB
from gpu_scheduler.api.parts import parts
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.model.request import JobKey, ProjectName
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.common.queue import WorkQueue
from gpu_scheduler.runtime.jobs.acceptance import Accepted, Refusal
from gpu_scheduler.runtime.jobs.refused.refusals import FIRST_SECONDS
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import GPUJobRecord, epoch_seconds

KEY = JobKey("team-a/job")
THERE = {"items": [{"metadata": {"uid": "gpujob-uid"}}]}  # GPUJobs
ENDED_AT = "2026-01-01T01:00:00Z"


class FakeAcceptance:
    """Accepts everything, or answers ``verdict``."""

    def __init__(self) -> None:
        self.verdict: Any = None
        self.judged = self.rendered_times = 0
        self.doubted: list[str] = []

    def doubts(self, namespace: str) -> bool:
        return bool(self.doubted)

    def doubt(self, namespace: str) -> None:
        self.doubted.append(namespace)

    def forget(self, job: GPUJobRecord) -> None: ...

    async def judge(
        self, job: GPUJobRecord, project: ProjectName, made: Container[str] = ()
    ) -> tuple[Accepted, ...] | Refusal:
        self.judged += 1
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict or await self.rendered(job, project)

    async def rendered(self, job: GPUJobRecord, project: ProjectName) -> tuple[Accepted, ...]:
        assert job.spec is not None
        self.rendered_times += 1
        return tuple(
            Accepted(
                {
                    "metadata": {
                        "name": part.job_name(job.name),
                        "namespace": job.namespace,
                        "labels": {"team": "put back by nobody"} | {LABEL_JOB: job.name},
                    },
                    "spec": {
                        "completions": part.pods,
                        "parallelism": part.spec.parallelism,
                        "suspend": job.spec.suspend,
                        "template": {"spec": {}},
                    },
                },
                WritePath.BIND,
                part.role,
            )
            for part in parts(job.spec)
        )


class Case:
    def __init__(self, **spec: Any) -> None:
        self.state = ClusterState()
        self.state.project_changed(make_project())
        self.state.gpujob_changed(make_gpujob(**spec))
        self.answers: dict[str, Any] = {"POST": make_job(version=5)}
        self.client = FakeClient(
            lambda sent: (
                THERE if sent.path.endswith("/gpujobs") else self.answers.get(sent.method, {})
            )
        )
        self.acceptance = FakeAcceptance()
        self.queue: WorkQueue[JobKey] = WorkQueue()
        self.now = epoch_seconds(ENDED_AT)
        self.reconciler = reconciler(
            self.state,
            self.client,
            self.acceptance,
            self.queue,
            now=lambda: self.now,
            clock=clock,
        )

    async def handle(self) -> None:
        """One look at the GPUJob; another one if pods of it get their places."""
        await self.reconciler.handle(KEY)
        if place_prospective(self.state):
            await self.reconciler.handle(KEY)

    async def keys_within(self, seconds: float) -> list[float]:
        """When the key comes back, in seconds from now."""
        start, seen = clock(), []

        async def note(key: JobKey) -> None:
            seen.append(round(clock() - start, 1))

        async with Running(self.queue.work(note)):
            await asyncio.sleep(seconds)
        return seen

    @property
    def problem(self) -> str:
        return self.state.gpujobs[KEY].problem

    @property
    def methods(self) -> list[str]:
        return [sent.method for sent in self.client.sent]


@virtual
async def test_a_job_is_created_once() -> None:
    case = Case()
    await case.handle()
    await case.handle()
    assert [(s.method, s.path) for s in case.client.sent] == [
        ("POST", "/apis/batch/v1/namespaces/team-a/jobs")
    ]
    assert case.problem == ""
    assert list(case.state.jobs.believed) == ["job-uid"]
    assert await case.keys_within(100) == []


@virtual
async def test_a_job_that_exists_already_and_is_ours_is_taken_in() -> None:
    case = Case()
    case.answers = {"POST": CONFLICT, "GET": make_job()}
    await case.handle()
    assert (case.problem, list(case.state.jobs.believed)) == ("", ["job-uid"])


@virtual
async def test_a_job_of_another_size_that_cannot_be_put_back_is_in_the_way() -> None:
    case = Case()
    case.answers = {
        "POST": CONFLICT,
        "GET": make_job(completions=5_000_000),
        "PATCH": UNPROCESSABLE,
    }
    await case.handle()
    assert "was changed or made by somebody else: told so" in case.problem
    assert case.state.jobs.believed == {}
    assert await case.keys_within(60) == [30.0]


@virtual
async def test_a_job_that_lost_its_label_gets_it_back_and_is_watched_again() -> None:
    case = Case()
    case.answers = {
        "POST": CONFLICT,
        "GET": make_job(labelled=False, version=2),
        "PATCH": make_job(version=3),
    }
    await case.handle()
    (patch,) = case.client.of("PATCH")
    assert patch.path == "/apis/batch/v1/namespaces/team-a/jobs/job"
    assert patch.body == {"metadata": {"uid": "job-uid", "labels": {LABEL_JOB: "job"}}}
    assert case.state.jobs.believed["job-uid"].version == 3


@virtual
async def test_a_job_of_somebody_else_is_left_alone_and_looked_at_again() -> None:
    case = Case()
    case.answers = {"POST": CONFLICT, "GET": make_job(owner_uid="")}
    await case.handle()
    assert case.methods == ["POST", "GET"]
    assert case.problem.startswith("metadata.name: ")
    assert case.state.jobs.believed == {}
    assert await case.keys_within(60) == [30.0]


@pytest.mark.parametrize(
    "other",
    [make_job(owner_uid="earlier-uid"), make_job(owner_uid="", deleting=True)],
    ids=["of an earlier GPUJob", "being deleted"],
)
def test_a_job_that_is_about_to_go_is_waited_for(other: Any) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answers = {"POST": CONFLICT, "GET": other}
        await case.handle()
        assert case.problem == ""
        (again,) = await case.keys_within(2)
        assert 0 < again < 1

    run()


@pytest.mark.parametrize("code", [400, 405, 413, 415, 422])
def test_a_job_that_the_server_refuses_says_why(code: int) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answers = {"POST": errors.from_answer(code, b"told so")}
        await case.handle()
        assert "told so" in case.problem and case.problem.startswith("spec: ")
        assert not case.state.decisions.nominated.of(KEY), "it holds nothing"
        (again,) = await case.keys_within(FIRST_SECONDS + 1)  # a policy may be what refused it
        assert again == FIRST_SECONDS

    run()


@virtual
async def test_a_namespace_without_a_project_is_told_who_can_help_and_not_who_else_there_is() -> (
    None
):
    case = Case()
    case.state.project_changed(make_project("team-b"))
    case.state.project_gone(ProjectName("team-a"))
    await case.handle()
    assert case.client.sent == []
    assert "namespace team-a belongs to no project" in case.problem
    assert "team-b" not in case.problem
    case.state.project_changed(make_project())
    await case.handle()
    assert (case.problem, case.methods) == ("", ["POST"])


@virtual
async def test_a_project_that_cannot_be_used_is_named_with_its_problem() -> None:
    case = Case()
    case.state.project_changed(make_project(problem="spec.quota: must not be negative"))
    await case.handle()
    assert case.client.sent == []
    assert "GPUProject team-a" in case.problem
    assert "spec.quota" in case.problem


@pytest.mark.parametrize("why", ["no project", "a project that cannot be used", "no such shape"])
def test_gpus_can_be_given_back_whatever_else_is_wrong(why: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(suspend=True)
        case.state.job_changed(make_job())
        if why == "no project":
            case.state.project_gone(ProjectName("team-a"))
        elif why == "no such shape":
            case.state.gpujobs[KEY].unknown = "spec.shape: there is no such shape"
        else:
            case.state.project_changed(make_project(problem="spec.quotaGPU: must be a number"))
        case.answers = {"PATCH": make_job(suspend=True, version=2)}
        await case.handle()
        await case.handle()
        (patch,) = case.client.sent
        assert patch.body == {"metadata": {"uid": "job-uid"}, "spec": {"suspend": True}}
        assert case.problem != ""

    run()


@virtual
async def test_a_spec_that_cannot_be_read_creates_nothing() -> None:
    case = Case(gpu=1.5)
    await case.handle()
    assert (case.client.sent, case.acceptance.judged) == ([], 0)
    assert case.problem.startswith("spec.gpu: ")


@virtual
async def test_a_refused_template_is_judged_again_later() -> None:
    case = Case()
    case.acceptance.verdict = Refusal("spec.template: no such volume")
    await case.handle()
    assert (case.client.sent, case.problem) == ([], "spec.template: no such volume")
    assert await case.keys_within(60) == [30.0]
    case.acceptance.verdict = None
    await case.handle()
    assert (case.problem, case.methods) == ("", ["POST"])


@virtual
async def test_a_verdict_on_a_spec_that_has_changed_meanwhile_is_dropped() -> None:
    case = Case()

    async def judge(job: GPUJobRecord, project: ProjectName) -> Refusal:
        case.state.gpujob_changed(make_gpujob(generation=2))
        return Refusal("of the old one")

    case.acceptance.judge = judge  # type: ignore[method-assign]
    await case.handle()
    assert case.problem == ""


@pytest.mark.parametrize("answer", [AWAY, errors.TooManyRequests(429), errors.ServerError(500)])
def test_a_server_that_cannot_answer_is_asked_again_less_and_less_often(
    answer: errors.ApiError,
) -> None:
    @virtual
    async def run() -> None:
        case = Case()
        case.answers = {"POST": answer}
        delays = []
        for _ in range(4):
            await case.handle()
            delays += await case.keys_within(100)
        assert delays == sorted(delays)
        assert len(set(delays)) == 4
        case.answers = {"POST": make_job()}
        await case.handle()
        assert await case.keys_within(100) == []

    run()


@virtual
async def test_an_error_that_nobody_foresaw_concerns_one_job_only() -> None:
    case = Case()
    case.acceptance.verdict = KeyError("surprise")
    await case.handle()
    assert len(await case.keys_within(100)) == 1


@virtual
async def test_a_closed_fence_ends_it() -> None:
    case = Case()
    case.answers = {"POST": NOT_LEADER}
    with pytest.raises(errors.NotLeader):
        await case.handle()


@virtual
async def test_a_job_that_goes_while_it_is_created_is_not_believed_to_be_there() -> None:
    case = Case()

    def deleted_before_the_answer(sent: Any) -> Any:
        for version in (1, 2):
            case.state.job_changed(make_job(version=version))
        case.state.job_gone("job-uid")
        return make_job(version=1)

    case.client.reply = deleted_before_the_answer
    await case.handle()
    assert case.state.jobs.believed == {} and not list(case.state.workloads.jobs(KEY))


@virtual
async def test_what_the_operator_may_not_ask_is_said_and_asked_ever_more_seldom() -> None:
    case = Case()
    refused = errors.Forbidden(403, "Forbidden", "no right to read Jobs")
    case.answers = {"POST": CONFLICT, "GET": refused}
    await case.handle()
    assert case.state.gpujobs[KEY].complaint == (
        "the API server refuses what its operator asks: no right to read Jobs (403 Forbidden)"
    )
    assert await case.keys_within(100) == [30.0]
    case.answers = {"POST": make_job(version=5)}
    await case.handle()
    assert case.state.gpujobs[KEY].complaint == ""


@virtual
async def test_a_job_whose_namespace_is_not_there_says_so() -> None:
    case = Case()
    case.answers = {"POST": errors.NotFound(404, "NotFound", 'namespaces "team-a" not found')}
    await case.handle()
    assert case.problem == (
        'metadata.namespace: no Job may be created in team-a: namespaces "team-a" not found'
    )


@virtual
async def test_a_job_that_nobody_may_create_says_why_and_is_tried_again() -> None:
    case = Case()
    used_up = "exceeded quota: jobs, requested: count/jobs.batch=1"
    case.answers = {"POST": errors.Forbidden(403, "Forbidden", used_up)}
    await case.handle()
    assert case.problem == f"metadata.namespace: no Job may be created in team-a: {used_up}"
    assert case.state.gpujobs[KEY].problem_as is Reason.PODS_REFUSED
    assert await case.keys_within(60) == [30.0]
    doubts = case.state.waiting.doubts
    assert KEY in doubts and not doubts.held_back(KEY), "nobody goes for it until it has started"


@virtual
async def test_who_is_refused_for_a_label_is_told_where_labels_of_jobs_come_from() -> None:
    case = Case()
    said = "ValidatingAdmissionPolicy 'x' denied request: jobs need the label team"
    case.answers = {"POST": errors.Forbidden(403, "Forbidden", said)}
    await case.handle()
    assert case.problem.endswith(
        f"{said}; labels of the GPUJob and those in template.metadata.labels are on its Job"
    )


@virtual
async def test_who_gets_the_label_that_was_wanted_is_tried_at_once() -> None:
    case = Case()
    said = "ValidatingAdmissionPolicy 'x' denied request: jobs need the label team"
    case.answers = {"POST": errors.Forbidden(403, "Forbidden", said)}
    await case.handle()
    assert case.problem
    await case.handle()
    assert case.methods == ["POST"], "the same is asked for later"
    case.answers = {"POST": make_job(version=5)}
    job = case.state.gpujobs[KEY]
    case.state.gpujob_changed(replace(job, labels=(("team", "vision"),), templates=None))
    await case.handle()
    assert case.methods == ["POST", "POST"] and case.problem == ""


@virtual
async def test_an_accepted_job_loses_its_old_problem() -> None:
    case = Case()
    case.state.job_changed(make_job())
    case.state.gpujobs[KEY].problem = "namespace team-a belongs to no project"
    case.state.changes.touched.clear()
    await case.handle()
    assert case.problem == ""
    assert case.state.changes.touched == {KEY}


@virtual
async def test_a_gpujob_that_is_deleted_or_gone_is_left_alone() -> None:
    case = Case(deleting=True)
    await case.handle()
    case.state.gpujob_gone(KEY)
    await case.handle()
    assert case.client.sent == []


@virtual
async def test_a_job_that_was_deleted_midway_is_made_again() -> None:
    case = Case()
    case.state.job_changed(make_job(uid="old", deleting=True))
    await case.handle()
    assert [method for method in case.methods if method != "GET"] == ["POST"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_job_is_never_run_again(phase: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(status={"phase": phase})
        await case.handle()
        assert case.client.sent == []

    run()


@pytest.mark.parametrize("ended", ["Complete", "Failed"])
def test_a_job_that_has_ended_is_not_patched(ended: str) -> None:
    @virtual
    async def run() -> None:
        case = Case(parallelism=5)
        case.state.job_changed(make_job(ended=ended, completions=5))
        await case.handle()
        assert case.client.sent == []

    run()


@virtual
async def test_a_gpujob_that_went_without_a_word_is_forgotten_when_its_job_goes() -> None:
    case = Case()
    case.state.job_changed(make_job())
    await case.handle()
    case.state.job_gone("job-uid")
    case.client.reply = lambda sent: {"items": [{"metadata": {"uid": "another"}}]}
    await case.reconciler.handle(KEY)
    assert KEY not in case.state.gpujobs and case.client.of("POST") == []
