"""The Jobs of a sweep: which are made, how wide they are, and when nothing is made any more."""

import sys
from collections.abc import Container
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtime.fake_client import NOT_FOUND, FakeClient, Sent
from tests.unit.runtime.job_writing import job_writes, place_prospective
from tests.unit.runtime.virtual_loop import virtual
from tests.unit.sweeps.runtime.cases import KEY, Case, segment_job

from gpu_scheduler.api.segments import SEGMENT_TRIALS, Segment
from gpu_scheduler.core.model.request import ProjectName
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube import errors
from gpu_scheduler.runtime.jobs.acceptance import Accepted, Refusal
from gpu_scheduler.runtime.jobs.accepting import Accepting
from gpu_scheduler.state.jobs.job import GPUJobRecord, JobRecord
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.runtime.loading import Loading
from gpu_scheduler.sweeps.runtime.prerequisites import Prerequisites
from gpu_scheduler.sweeps.runtime.results import Results
from gpu_scheduler.sweeps.runtime.segment_jobs import SegmentJobs
from gpu_scheduler.sweeps.runtime.segments import Segments, parallelisms, to_open
from gpu_scheduler.sweeps.search.studies import Studies

TEAM = ProjectName("team-a")
FIRST = Segment(0, 0, 1000)


class FakeAcceptance:
    """Renders no more than what a segment is."""

    def __init__(self) -> None:
        self.refused = ""
        self.judged = 0

    def doubts(self, namespace: str) -> bool:
        return False

    async def judge(
        self, job: GPUJobRecord, project: ProjectName, made: Container[str] = ()
    ) -> Any:
        self.judged += 1
        return Refusal(self.refused) if self.refused else await self.rendered(job, project, FIRST)

    async def rendered(
        self, job: GPUJobRecord, project: ProjectName, segment: Segment
    ) -> tuple[Accepted, ...]:
        meta = {"name": f"job-s{segment.number}", "namespace": job.namespace}
        spec = {"first": segment.first, "completions": segment.size, "template": {"spec": {}}}
        return (Accepted({"metadata": meta, "spec": spec}, WritePath.BIND),)


class Making(Case):
    """A case whose Jobs are made and patched."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.acceptance = FakeAcceptance()
        self.client = FakeClient(lambda sent: self.refused.get(sent.method) or self._reply(sent))
        self.refused: dict[str, errors.ApiError] = {}
        self.version = 10
        results = Results(self.client, self.sweeps, seconds=5, clock=lambda: 0.0)  # type: ignore[arg-type]
        jobs = SegmentJobs(
            self.state,
            self.client,  # type: ignore[arg-type]
            self.acceptance,  # type: ignore[arg-type]
            job_writes(self.state, self.client, clock=lambda: self.now),
            made=self.trials.job_changed,
        )
        loading = Loading(self.state, self.sweeps, self.trials, results)
        accepting = Accepting(self.state, self.acceptance, clock=lambda: 0.0)  # type: ignore[arg-type]
        prerequisites = Prerequisites(Studies(), reads_logs=False)
        self.segments = Segments(self.state, jobs, accepting, loading, prerequisites)

    def _reply(self, sent: Sent) -> Any:
        self.version += 1
        if sent.method == "GET":
            return NOT_FOUND
        if sent.method == "POST":
            number = int(sent.body["metadata"]["name"].removeprefix("job-s"))
            spec = sent.body["spec"]
            size, width = spec["completions"], spec["parallelism"]
            return segment_job(number, spec["first"], size, parallelism=width, version=self.version)
        name = sent.path.rpartition("/")[2]
        known = next(j for j in self.state.workloads.jobs(KEY) if j.name == name)
        spec = {"parallelism": known.parallelism, "suspend": known.suspend} | sent.body["spec"]
        number = int(name.removeprefix("job-s"))
        spec["succeeded"] = known.succeeded
        size = spec.pop("completions", known.completions)
        return segment_job(number, known.first_trial, size, version=self.version, **spec)

    async def follow(self) -> str:
        """One look at the GPUJob; what is wrong with it."""
        job = self.state.gpujobs[KEY]
        problem = await self.segments.follow(job, TEAM)
        if place_prospective(self.state):
            problem = await self.segments.follow(job, TEAM)
        return problem

    def end(self, *trials: int) -> None:
        """Trials end, and their Jobs count them."""
        for trial in trials:
            self.trials.end(self.sweep, Outcome(trial, TrialState.SUCCEEDED, 1.0))
        for job in list(self.state.workloads.jobs(KEY)):
            theirs = [t for t in trials if 0 <= t - job.first_trial < job.completions]
            if theirs:
                self.version += 1
                done = job.succeeded + len(theirs)
                self._job_says(job, self.version, parallelism=job.parallelism, succeeded=done)

    def _job_says(self, job: JobRecord, version: int, **said: Any) -> None:
        number = int(job.name.removeprefix("job-s"))
        obj = segment_job(number, job.first_trial, job.completions, version=version, **said)
        self.state.job_changed(obj)

    @property
    def jobs(self) -> dict[str, tuple[int, int, int]]:
        """First trial, number of trials and width, by name."""
        return {
            j.name: (j.first_trial, j.completions, j.parallelism)
            for j in self.state.workloads.jobs(KEY)
        }


@virtual
async def test_a_sweep_of_a_hundred_thousand_trials_begins_with_one_job() -> None:
    case = Making(completions=100_000)
    await case.follow()
    await case.follow()
    assert case.jobs == {"job-s0": (0, 1000, 2)}
    assert case.acceptance.judged == 1 and len(case.client.sent) == 1


@virtual
async def test_the_next_segment_opens_when_fewer_are_left_than_may_run() -> None:
    case = Making(completions=1500)
    await case.follow()
    case.end(*range(998))
    await case.follow()
    assert len(case.jobs) == 1
    case.end(998)
    await case.follow()
    assert case.jobs == {"job-s0": (0, 1000, 2), "job-s1": (1000, 500, 1)}
    case.end(999)
    await case.follow()
    assert case.jobs == {"job-s0": (0, 1000, 2), "job-s1": (1000, 500, 2)}
    assert len(case.client.sent) == 3, "no Job is patched but the later one, once"


@virtual
async def test_more_completions_are_segments_of_their_own() -> None:
    case = Making(completions=3)
    await case.follow()
    case.end(0, 1)
    case.sweep.completions = 8
    record = case.state.gpujobs[KEY]
    assert record.spec is not None
    record.spec = record.spec.model_copy(update={"completions": 8})
    await case.follow()
    assert case.jobs == {"job-s0": (0, 3, 2), "job-s1": (3, 5, 1)}


@virtual
async def test_a_job_that_was_deleted_is_made_again_unless_all_its_trials_have_ended() -> None:
    case = Making(completions=12)
    for number in range(3):
        case.job(number, first=4 * number, size=4, parallelism=2)
    case.end(0, 1, 2, 3, 4)
    case.state.job_gone("job-0")
    case.state.job_gone("job-1")
    await case.follow()
    assert case.jobs == {"job-s1": (4, 4, 2), "job-s2": (8, 4, 0)}
    methods = [sent.method for sent in case.client.sent if sent.method != "GET"]
    assert methods == ["PATCH", "POST"], "the one makes room before the other begins"


@virtual
async def test_what_a_job_does_not_give_up_no_other_gets_and_the_gpujob_says_why() -> None:
    case = Making(completions=12)
    for number in (1, 2):
        case.job(number, 4 * number, parallelism=2)
    case.sweep.completions = 12
    case.end(*range(5))
    case.refused = {"PATCH": errors.Forbidden(403, "Forbidden", "no changes on Mondays")}
    assert await case.follow() == ""
    record = case.state.gpujobs[KEY]
    assert not case.client.of("POST")
    told = case.segments.complaint(record)
    assert "refuses the change of Job job-s" in told and "no changes on Mondays" in told
    assert case.state.decisions.inadmissible, "nothing is planned that would find no Job"
    tried = len(case.client.of("PATCH"))
    case.refused = {}
    assert await case.follow() == ""
    assert len(case.client.of("PATCH")) == tried
    case.now += 31
    assert await case.follow() == ""
    assert case.segments.complaint(record) == "" and not case.state.decisions.inadmissible


@virtual
async def test_a_job_that_was_made_again_and_the_next_one_share_what_may_run_at_once() -> None:
    case = Making(completions=1500)
    await case.follow()
    case.end(*range(999))
    await case.follow()
    assert case.jobs == {"job-s0": (0, 1000, 2), "job-s1": (1000, 500, 1)}
    case.state.job_gone("job-0")
    await case.follow()
    assert case.jobs == {"job-s0": (0, 1000, 2), "job-s1": (1000, 500, 0)}
    case.trials.end(case.sweep, Outcome(999, TrialState.SUCCEEDED, 1.0))
    await case.follow()
    assert case.jobs["job-s1"] == (1000, 500, 0), "the other still runs its trials again"
    (again,) = (job for job in case.state.workloads.jobs(KEY) if job.name == "job-s0")
    case._job_says(again, case.version + 1, parallelism=2, succeeded=999)
    await case.follow()
    assert case.jobs["job-s1"] == (1000, 500, 1)


@virtual
async def test_what_the_acceptance_refuses_makes_no_job() -> None:
    case = Making()
    case.acceptance.refused = "spec.template: no"
    assert await case.follow() == "spec.template: no"
    assert case.client.sent == []


@virtual
async def test_a_sweep_that_has_failed_is_stopped_and_starts_nothing() -> None:
    case = Making(completions=2000, maxFailedTrials=0)
    await case.follow()
    assert not await case.segments.ended(case.state.gpujobs[KEY])
    case.trials.end(case.sweep, Outcome(0, TrialState.FAILED))
    assert await case.segments.ended(case.state.gpujobs[KEY])
    (patch,) = case.client.of("PATCH")
    assert patch.body["spec"] == {"suspend": True}
    await case.segments.ended(case.state.gpujobs[KEY])
    assert len(case.client.of("PATCH")) == 1


@virtual
async def test_a_sweep_whose_status_says_that_it_ended_never_runs_again() -> None:
    case = Making()
    record = case.state.gpujobs[KEY]
    record.status = {"phase": "Succeeded", "sweep": {"trials": 4}}
    assert await case.segments.ended(record)
    record.status = {"phase": "Succeeded", "sweep": {"trials": 3}}
    assert not await case.segments.ended(record), "a trial was added since"
    record.status = {"phase": "Failed", "sweep": {"trials": 3}}
    assert await case.segments.ended(record)


async def test_without_optuna_an_adaptive_search_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    case = Making(algorithm="tpe")
    problem = await case.follow()
    assert problem.startswith("spec.sweep.algorithm: ")
    assert "pip install optuna" in problem and "halton" in problem
    assert case.client.sent == []


async def test_results_from_logs_that_nobody_reads_are_refused_before_a_trial_runs() -> None:
    case = Making(resultFrom={"logRegex": "loss=([0-9.]+)"})
    problem = await case.follow()
    assert problem.startswith("spec.sweep.resultFrom: ")
    assert "$GPUJOB_RESULT_FILE" in problem and "sweeps.readLogs" in problem
    assert case.client.sent == []
    case.sweep.table.put(Outcome(0, TrialState.SUCCEEDED, 0.5))  # of before they were not read
    assert await case.follow() == ""
    assert case.jobs


@virtual
async def test_a_sweep_is_no_wider_than_its_project_and_the_cluster_allow() -> None:
    case = Making(completions=100_000, parallelism=50_000)
    await case.follow()
    await case.follow()
    assert case.jobs == {"job-s0": (0, 1000, 4 + 20)}


def opened(case: Case, total: int) -> list[Segment]:
    """All segments that open for so many trials, when all of them may run at once."""
    existing = sorted(case.state.workloads.jobs(KEY), key=lambda job: job.first_trial)
    found = to_open(case.sweep, existing, total, parallelism=sys.maxsize)
    for segment in found:
        case.job(segment.number, segment.first, segment.size, succeeded=0)
    return found


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6))
def test_every_trial_is_in_one_segment_however_often_trials_are_added(rises):
    case, found, total = Case(completions=sum(rises)), [], 0
    for rise in rises:
        total += rise
        found += opened(case, total)
        assert opened(case, total) == []
    assert [s.number for s in found] == list(range(len(found)))
    trials = [trial for s in found for trial in range(s.first, s.end)]
    assert trials == list(range(total))
    assert all(1 <= s.size <= SEGMENT_TRIALS for s in found)


@given(st.lists(st.integers(0, 1000), max_size=8), st.integers(1, 3000))
def test_segments_share_the_parallelism_and_none_gets_more_than_it_has_left(left, parallelism):
    found = parallelisms(left, parallelism)
    assert sum(found) == min(parallelism, sum(left))
    assert all(width <= each for width, each in zip(found, left, strict=True))
