import msgspec
import pytest
from tests.unit.state.builders import make_gpujob, make_job

from gpu_scheduler.api.names import FIRST_TRIAL, SEGMENT
from gpu_scheduler.state.cluster_state import ClusterState
from gpu_scheduler.state.jobs.job import epoch_seconds, job_record


def test_times_are_seconds_since_the_epoch() -> None:
    assert epoch_seconds("1970-01-01T00:01:00Z") == 60.0
    assert epoch_seconds("") == 0.0


def test_a_job_belongs_to_the_gpujob_that_controls_it() -> None:
    found = job_record(make_job("sweep", owner="sweep", owner_uid="u"))
    assert found is not None
    assert (found.owner, found.owner_uid) == ("team-a/sweep", "u")


def test_a_job_of_nobody_is_not_ours() -> None:
    assert job_record(make_job(owner_uid="")) is None


def test_a_failure_always_has_words() -> None:
    failed = job_record(make_job(ended="Failed"))
    assert failed is not None
    assert failed.failure
    assert not failed.complete


def test_the_least_compute_capability_of_a_gpujob_is_parsed_once() -> None:
    assert make_gpujob(gpu=0.3, minComputeCapability="8.0").min_compute == (8, 0)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("1", 1), ("0,2-4,9", 5)])
def test_indexes_that_failed_for_good_are_counted(text: str, count: int) -> None:
    found = job_record(make_job(completions=10, failed_indexes=text))
    assert found is not None
    assert found.failed_indexes == count


def test_the_job_of_a_segment_has_no_role_and_says_which_trials_it_runs() -> None:
    job = make_job("search-s2", owner="search", completions=5, failed_indexes="1,3-4")
    notes = {SEGMENT: "2", FIRST_TRIAL: "2000"}
    meta = msgspec.structs.replace(job.metadata, annotations=notes)
    found = job_record(msgspec.structs.replace(job, metadata=meta))
    assert found is not None
    assert (found.role, found.first_trial, list(found.lost)) == ("", 2000, [1, 3, 4])


def test_a_job_that_went_out_of_sight_is_seen_again_only_by_later_news() -> None:
    state = ClusterState()
    state.job_changed(make_job(version=5))
    state.job_gone("job-uid")
    assert state.job_changed(make_job(version=5)) is None
    assert state.jobs.believed == {}
    state.job_changed(make_job(version=6))
    assert list(state.jobs.believed) == ["job-uid"]
