"""Jobs that say that they are a GPUJob's: only those that we would make are believed."""

from typing import Any

import msgspec
import pytest
from tests.unit.runtime.sweeps.cases import RANDOM, segment_job
from tests.unit.state.builders import half, make_gpujob, make_job, make_node, make_pod, make_project
from tests.unit.state.worlds import waiting

from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.kube.objects import Job
from gpu_scheduler.state.own_jobs import JobBook
from gpu_scheduler.state.world import World

KEY = JobKey("team-a/job")
ROLES = [{"name": "lead", "gpu": 1}, {"name": "work", "gpu": 1, "replicas": 3}]


def world_of(**spec: Any) -> World:
    world = World()
    world.node_changed(make_node("a"))
    world.project_changed(make_project())
    record = make_gpujob(**spec)
    assert record.spec is not None, record.problem
    world.gpujob_changed(record)
    return world


def sweep(completions: int = 3000) -> World:
    return world_of(completions=completions, parallelism=2, sweep=RANDOM)


def believed(world: World) -> list[str]:
    return [job.name for job in world.jobs_of(KEY)]


def told(world: World) -> str:
    return world.job_book.to_tell(world.gpujobs[KEY])


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
    world = world_of(**spec)
    assert world.job_changed(job) is None
    world.pod_changed(make_pod(job=job.metadata.uid))
    assert believed(world) == [] and waiting(world) == {} and list(world.records(KEY)) == []
    assert job.metadata.name in told(world)
    assert told(world) == ""


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
    world = sweep()
    assert world.job_changed(job) is None
    assert believed(world) == [] and told(world)


def test_our_own_jobs_are_believed() -> None:
    world = world_of(gpu=None, roles=ROLES)
    world.job_changed(make_job("job-lead", owner="job", uid="lead"))
    world.job_changed(make_job("job-work", owner="job", uid="work", completions=3))
    assert believed(world) == ["job-lead", "job-work"] and told(world) == ""
    world = sweep()
    for number in range(3):
        world.job_changed(segment_job(number, 1000 * number, 1000))
    assert len(believed(world)) == 3


def test_segments_of_trials_that_were_added_later_are_believed() -> None:
    world = sweep(30)
    world.job_changed(segment_job(0, 0, 10))
    world.job_changed(segment_job(1, 10, 20))
    assert believed(world) == ["job-s0", "job-s1"]


def test_a_job_that_is_seen_before_its_gpujob_is_judged_when_that_comes() -> None:
    world = World()
    world.project_changed(make_project())
    world.job_changed(make_job(completions=4))
    world.job_changed(make_job("forged", uid="forged", owner="job", completions=4))
    world.pod_changed(make_pod())
    world.pod_changed(make_pod("forged-0", job="forged"))
    world.gpujob_changed(make_gpujob(completions=4))
    assert believed(world) == ["job"]
    assert waiting(world) == {KEY: ["job-0"]}


def test_a_job_is_believed_once_the_change_of_its_gpujob_is_known() -> None:
    world = sweep(1000)
    world.job_changed(segment_job(1, 1000, 500))
    assert believed(world) == []
    grown = make_gpujob(completions=1500, parallelism=2, sweep=RANDOM, generation=2)
    world.gpujob_changed(grown)
    assert believed(world) == ["job-s1"]


def test_a_job_that_grows_under_an_editors_hands_loses_its_belief_and_its_pods() -> None:
    world = world_of(completions=4)
    world.job_changed(make_job(completions=4))
    world.pod_changed(make_pod())
    world.pod_changed(make_pod("job-1", node="a", grants=half(), phase="Running"))
    world.job_changed(make_job(completions=5, version=2))
    assert believed(world) == [] and waiting(world) == {}
    held = world.running_pods.get(make_pod("job-1").metadata.uid)  # type: ignore[arg-type]
    assert held is not None and held.job != KEY and held.priority == 0
    world.job_changed(make_job(completions=4, version=3))
    assert believed(world) == ["job"] and waiting(world) == {KEY: ["job-0"]}


def test_old_news_of_a_job_that_is_not_believed_are_not_taken() -> None:
    world = world_of(completions=4)
    world.job_changed(make_job(completions=5, version=5))
    assert world.job_changed(make_job(completions=4, version=4)) is None
    assert believed(world) == []
    world.job_gone("job-uid")
    assert world.job_changed(make_job(completions=4, version=6)) is not None


def test_a_job_of_an_earlier_gpujob_of_the_name_is_not_judged_by_the_later_one() -> None:
    world = world_of(completions=4)
    world.job_changed(make_job(completions=9, owner_uid="earlier"))
    assert believed(world) == [] and told(world) == ""
    world.job_gone("job-uid")
    world.job_changed(make_job(uid="new", completions=4))
    assert believed(world) == ["job"]


@pytest.mark.parametrize("forged_first", [True, False])
def test_of_two_jobs_with_the_same_trials_the_older_is_believed(forged_first: bool) -> None:

    def at(job: Job, created: str) -> Job:
        meta = msgspec.structs.replace(job.metadata, creation_timestamp=created)
        return msgspec.structs.replace(job, metadata=meta)

    ours = at(segment_job(1, 1000, 1000), "2026-01-01T00:00:00Z")
    forged = at(segment_job(2, 1500, 1000), "2026-01-01T00:00:09Z")
    world = sweep()
    for job in (forged, ours) if forged_first else (ours, forged):
        world.job_changed(job)
    assert believed(world) == ["job-s1"] and "job-s2" in told(world)


def test_nothing_is_left_of_jobs_that_are_gone() -> None:
    world = world_of()
    for number in range(100):
        world.job_changed(make_job(f"forged-{number}", uid=f"f{number}", owner="job"))
    for number in range(100):
        world.job_gone(f"f{number}")
    assert list(world.job_book.claims(KEY)) == []
    kept = {"_departed": 0, "_told": 0}
    assert vars(world.job_book) | kept == vars(JobBook()) | kept
