"""Jobs that say that they are a GPUJob's: only those that we would make are believed."""

from typing import Any

import msgspec
import pytest
from tests.unit.state.builders import half, make_gpujob, make_job, make_node, make_pod, make_project
from tests.unit.state.cluster_states import waiting
from tests.unit.sweeps.runtime.cases import RANDOM, segment_job

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.own_jobs import JobStore

KEY = JobKey("team-a/job")
ROLES = [{"name": "lead", "gpu": 1}, {"name": "work", "gpu": 1, "replicas": 3}]


def world_of(**spec: Any) -> ClusterState:
    state = ClusterState()
    state.nodes.changed(make_node("a"))
    state.project_changed(make_project())
    record = make_gpujob(**spec)
    assert record.spec is not None, record.problem
    state.gpujob_changed(record)
    return state


def sweep(completions: int = 3000) -> ClusterState:
    return world_of(completions=completions, parallelism=2, sweep=RANDOM)


def believed(state: ClusterState) -> list[str]:
    return [job.name for job in state.workloads.jobs(KEY)]


def told(state: ClusterState) -> str:
    return state.jobs.to_tell(state.gpujobs[KEY])


FORGED = [
    pytest.param({}, make_job("other", owner="job"), id="another name"),
    pytest.param({}, make_job("job-lead", owner="job"), id="a role that there is not"),
    pytest.param({}, make_job(completions=5_000_000), id="five million completions"),
    pytest.param({"completions": 4}, make_job(completions=5), id="one too many"),
    pytest.param({"gpu": None, "roles": ROLES}, make_job(completions=1), id="no role"),
    pytest.param(
        {"gpu": None, "roles": ROLES}, make_job("job-work", owner="job", completions=4), id="role"
    ),
    pytest.param({}, segment_job(0, 0, 1), id="a segment of no sweep"),
]


@pytest.mark.parametrize(("spec", "job"), FORGED)
def test_a_job_that_we_would_not_make_is_nobodys(spec: dict[str, Any], job: Job) -> None:
    state = world_of(**spec)
    assert state.job_changed(job) is None
    state.pod_changed(make_pod(job=job.metadata.uid))
    assert believed(state) == [] and waiting(state) == {} and list(state.workloads.pods(KEY)) == []
    assert job.metadata.name in told(state)
    assert told(state) == ""


@pytest.mark.parametrize(
    "job",
    [
        segment_job(0, 0, 5_000_000),
        segment_job(999_999_999, 0, 1),
        segment_job(1, 1000, 1001),
        segment_job(2, 2000, 1001),
        segment_job(1, 2500, 10),
        segment_job(5, 2, 1),
        make_job(owner="job", completions=1),
        make_job("job-s1", owner="job", completions=1),
    ],
    ids=["size", "number", "over", "past the end", "place", "number and place", "none", "unmarked"],
)
def test_a_segment_that_the_sweep_cannot_have_is_nobodys(job: Job) -> None:
    state = sweep()
    assert state.job_changed(job) is None
    assert believed(state) == [] and told(state)


def test_our_own_jobs_are_believed() -> None:
    state = world_of(gpu=None, roles=ROLES)
    state.job_changed(make_job("job-lead", owner="job", uid="lead"))
    state.job_changed(make_job("job-work", owner="job", uid="work", completions=3))
    assert believed(state) == ["job-lead", "job-work"] and told(state) == ""
    state = sweep()
    for number in range(3):
        state.job_changed(segment_job(number, 1000 * number, 1000))
    assert len(believed(state)) == 3


def test_segments_of_trials_that_were_added_later_are_believed() -> None:
    state = sweep(30)
    state.job_changed(segment_job(0, 0, 10))
    state.job_changed(segment_job(1, 10, 20))
    assert believed(state) == ["job-s0", "job-s1"]


def test_a_job_that_is_seen_before_its_gpujob_is_judged_when_that_comes() -> None:
    state = ClusterState()
    state.project_changed(make_project())
    state.job_changed(make_job(completions=4))
    state.job_changed(make_job("forged", uid="forged", owner="job", completions=4))
    state.pod_changed(make_pod())
    state.pod_changed(make_pod("forged-0", job="forged"))
    state.gpujob_changed(make_gpujob(completions=4))
    assert believed(state) == ["job"]
    assert waiting(state) == {KEY: ["job-0"]}


def test_a_job_is_believed_once_the_change_of_its_gpujob_is_known() -> None:
    state = sweep(1000)
    state.job_changed(segment_job(1, 1000, 500))
    assert believed(state) == []
    grown = make_gpujob(completions=1500, parallelism=2, sweep=RANDOM, generation=2)
    state.gpujob_changed(grown)
    assert believed(state) == ["job-s1"]


def test_a_job_that_grows_under_an_editors_hands_loses_its_belief_and_its_pods() -> None:
    state = world_of(completions=4)
    state.job_changed(make_job(completions=4, parallelism=2))
    state.pod_changed(make_pod())
    state.pod_changed(make_pod("job-1", node="a", devices=half(), phase="Running"))
    state.job_changed(make_job(completions=5, version=2))
    assert believed(state) == [] and waiting(state) == {}
    held = state.running_pods.get(make_pod("job-1").metadata.uid)  # type: ignore[arg-type]
    assert held is not None and held.job != KEY and not held.leaving
    state.job_changed(make_job(completions=4, parallelism=2, version=3))
    assert believed(state) == ["job"] and waiting(state) == {KEY: ["job-0"]}


def test_old_news_of_a_job_that_is_not_believed_are_not_taken() -> None:
    state = world_of(completions=4)
    state.job_changed(make_job(completions=5, version=5))
    assert state.job_changed(make_job(completions=4, version=4)) is None
    assert believed(state) == []
    state.job_gone("job-uid")
    assert state.job_changed(make_job(completions=4, version=6)) is not None


def test_a_job_of_an_earlier_gpujob_of_the_name_is_not_judged_by_the_later_one() -> None:
    state = world_of(completions=4)
    state.job_changed(make_job(completions=9, owner_uid="earlier"))
    assert believed(state) == [] and told(state) == ""
    state.job_gone("job-uid")
    state.job_changed(make_job(uid="new", completions=4))
    assert believed(state) == ["job"]


@pytest.mark.parametrize("forged_first", [True, False])
def test_of_two_jobs_with_the_same_trials_the_older_is_believed(forged_first: bool) -> None:

    def at(job: Job, created: str) -> Job:
        meta = msgspec.structs.replace(job.metadata, creation_timestamp=created)
        return msgspec.structs.replace(job, metadata=meta)

    ours = at(segment_job(1, 1000, 1000), "2026-01-01T00:00:00Z")
    forged = at(segment_job(2, 1500, 1000), "2026-01-01T00:00:09Z")
    state = sweep()
    for job in (forged, ours) if forged_first else (ours, forged):
        state.job_changed(job)
    assert believed(state) == ["job-s1"] and "job-s2" in told(state)


def test_nothing_is_left_of_jobs_that_are_gone() -> None:
    state = world_of()
    for number in range(100):
        state.job_changed(make_job(f"forged-{number}", uid=f"f{number}", owner="job"))
    for number in range(100):
        state.job_gone(f"f{number}")
    assert list(state.jobs.claims(KEY)) == []
    kept = {"_departed": 0, "_told": 0, "deleted": 0}
    assert vars(state.jobs) | kept == vars(JobStore()) | kept


@pytest.mark.parametrize("name", ["job", "forged"])  # one that is believed, and one that is not
def test_nothing_is_left_of_a_job_that_somebody_gave_to_another_gpujob(name: str) -> None:
    state = world_of()
    state.job_changed(make_job(name, owner="job"))
    state.job_changed(make_job(name, owner="other", owner_uid="other-uid", version=2))
    assert list(state.jobs.claims(KEY)) == []
    assert [own.owner for own in state.jobs.claims(JobKey("team-a/other"))] == ["team-a/other"]
    state.job_gone("job-uid")
    assert list(state.jobs.claims(KEY)) == list(state.jobs.of(KEY)) == []
    kept = {"_departed": 0, "_told": 0, "vanished": 0}
    assert vars(state.jobs) | kept == vars(JobStore()) | kept
