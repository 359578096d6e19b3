"""What becomes of trials: out of pods, Jobs, and whatever order their news come in."""

from typing import Any

import msgspec
import pytest
from tests.unit.state.builders import CREATED, gpujob_body
from tests.unit.sweeps.runtime.cases import KEY, RANDOM, Case, segment_job, trial_pod

from gpu_scheduler.api.names import CONDITION_PRUNED, SEGMENT
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.informers.custom_resources import gpujob_record
from gpu_scheduler.state.jobs.job import job_record
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.results import Reading
from gpu_scheduler.sweeps.runtime.trials import LOST, VANISHED

GOOD = '{"loss": 0.5}'


def test_a_pod_that_succeeded_ends_its_trial_with_what_it_said() -> None:
    case = Case()
    case.job()
    case.pod(1)
    assert case.sweep.running(1) == "uid-job-1" and case.sweep.table.get(1) is None
    case.pod(1, message=GOOD, version=2)
    assert case.outcome(1) == Outcome(1, TrialState.SUCCEEDED, 0.5)
    assert case.sweep.running(1) is None
    assert KEY in case.changed and KEY in case.state.changes.touched


def test_a_pod_that_failed_ends_nothing_until_its_job_gives_the_index_up() -> None:
    case = Case()
    case.job()
    case.pod(1, message="out of memory", code=137)
    assert case.sweep.table.get(1) is None
    case.job(version=2, failed_indexes="1")
    told = "container main ended with exit code 137 (SIGKILL): out of memory"
    assert case.outcome(1) == Outcome(1, TrialState.FAILED, message=told)


def test_a_trial_whose_retry_succeeded_has_not_failed() -> None:
    case = Case()
    case.job()
    case.pod(1, "first", message="", code=1)
    case.pod(1, "second", message=GOOD)
    case.job(version=2, completed_indexes="1")
    assert case.outcome(1).state is TrialState.SUCCEEDED
    assert case.sweep.failures == {}


def test_news_of_the_job_may_come_before_those_of_the_pod() -> None:
    case = Case()
    case.job(completed_indexes="0", failed_indexes="1")
    assert case.trials.overdue(3.0) == []
    case.pod(0, message=GOOD)
    case.pod(1, message="", code=2)
    assert case.outcome(0).value == 0.5
    assert case.outcome(1).message == "container main ended with exit code 2"
    case.now += 10
    assert case.trials.overdue(3.0) == []


def test_pods_that_come_before_their_job_are_read_once_it_is_known() -> None:
    case = Case()
    case.pod(2, message=GOOD)
    assert len(case.sweep.table) == 0
    case.job()
    assert case.outcome(2).value == 0.5


def test_nothing_is_read_before_what_is_stored_was_loaded() -> None:
    """What is stored knows that a trial was told to stop; its pod alone does not."""
    case = Case(loaded=False)
    case.job()
    case.pod(0, message=GOOD)
    case.pod(1, message="")
    assert len(case.sweep.table) == 0
    case.sweep.restore(Outcome(1, TrialState.PRUNED))
    case.sweep.loaded = True
    case.trials.loaded(case.sweep)
    assert case.outcome(0).value == 0.5
    assert case.outcome(1).state is TrialState.PRUNED


def test_a_pod_that_is_gone_from_the_api_server_loses_its_result_and_says_so() -> None:
    case = Case()
    job = case.job(completed_indexes="0,2", failed_indexes="1")
    case.now += 3.5
    ((sweep, overdue, trials),) = case.trials.overdue(3.0)
    assert (overdue, sorted(trials)) == (job, [0, 1, 2])
    case.trials.resolve(sweep, overdue, trials, [trial_pod(2, message=GOOD)])
    assert case.outcome(0) == Outcome(0, TrialState.RESULT_MISSING, message=VANISHED)
    assert case.outcome(1) == Outcome(1, TrialState.FAILED, message=LOST)
    assert case.outcome(2).value == 0.5
    assert case.trials.overdue(0.0) == []


def test_a_job_that_failed_as_a_whole_ends_all_its_trials() -> None:
    case = Case()
    job = case.job(ended="Failed", message="somebody set a deadline", completed_indexes="0")
    case.pod(0, message=GOOD)
    case.now += 5
    ((sweep, _, trials),) = case.trials.overdue(3.0)
    case.trials.resolve(sweep, job, trials, [])
    assert [case.outcome(t).state for t in range(4)] == [TrialState.SUCCEEDED] + [
        TrialState.FAILED
    ] * 3


def test_trials_of_later_segments_are_counted_on() -> None:
    case = Case(completions=8)
    case.job()
    case.job(1, first=4, size=4)
    case.pod(5, first=4, number=1, message=GOOD)
    assert case.outcome(5).value == 0.5
    assert case.sweep.dirty == {1}


def test_what_has_ended_never_changes() -> None:
    case = Case()
    case.job()
    case.pod(0, "first", message=GOOD)
    case.pod(0, "second", message='{"loss": 0.1}')
    case.job(version=2, failed_indexes="0")
    assert case.outcome(0).value == 0.5


def test_a_trial_that_was_told_to_stop_is_pruned_however_it_ends() -> None:
    case = Case()
    case.job()
    for trial in (0, 1, 2):
        case.pod(trial)
        case.sweep.stop(trial)
    case.pod(0, message="", version=2)
    case.pod(1, message="", code=143, version=2)
    case.job(version=2, completed_indexes="0", failed_indexes="1")
    assert case.outcome(0).state is case.outcome(1).state is TrialState.PRUNED
    assert case.outcome(2).state is TrialState.STARTED and not case.sweep.final(2)


def test_an_exit_code_of_fail_fast_lets_no_trial_start() -> None:
    case = Case(failFastExitCodes=[42])
    case.job()
    assert case.sweeps.may_start(KEY)
    before = case.state.changes.version
    case.pod(0, message="", code=42)
    assert not case.sweeps.may_start(KEY) and case.state.changes.version > before


def test_an_init_container_that_fails_is_named_and_is_no_program_of_the_trial() -> None:
    """Somebody else has put it there: the GPUJob has one container, as its Job's rules say."""
    case = Case(failFastExitCodes=[42])
    case.job()
    ended = {"exitCode": 42, "message": "no data", "reason": "Error"}
    case.pod(
        0,
        phase="Failed",
        init_containers=[{"name": "fetch"}],
        initContainerStatuses=[{"name": "fetch", "state": {"terminated": ended}}],
        containerStatuses=[{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
    )
    case.job(version=2, failed_indexes="0")
    assert case.outcome(0).message == "container fetch ended with exit code 42: no data"
    assert case.sweep.fatal is None


def test_a_target_lets_no_trial_start_and_ends_once_nothing_runs() -> None:
    case = Case(objective={"metric": "loss", "target": 0.5})
    case.job()
    case.pod(0)
    case.pod(1)
    case.pod(0, message=GOOD, version=2)
    assert not case.sweep.may_start
    assert case.sweep.verdict().phase == "Running"
    case.pod(1, message='{"loss": 3}', version=2)
    assert case.sweep.verdict().phase == "Succeeded"


def test_a_pod_that_is_gone_runs_no_longer() -> None:
    case = Case()
    case.job()
    case.pod(0)
    case.trials.gone(next(iter(case.sweep.live.values())))
    assert case.sweep.live == {}


@pytest.mark.parametrize("uid", ["", "another"])
def test_pods_of_an_earlier_job_of_that_name_do_not_count(uid: str) -> None:
    case = Case()
    case.job(owner_uid=uid) if uid else None
    case.pod(0, message=GOOD)
    assert len(case.sweep.table) == 0


def test_values_of_an_adaptive_search_are_remembered_from_the_pods() -> None:
    case = Case(algorithm="tpe")
    case.job()
    case.pod(0, hparams='{"lr": 0.25}')
    assert case.sweep.parameters(0) == {"lr": 0.25}
    case.pod(0, message=GOOD, hparams='{"lr": 0.25}', version=2)
    assert case.outcome(0) == Outcome(0, TrialState.SUCCEEDED, 0.5, parameters=(0.25,))


def test_a_pod_whose_trial_is_over_is_not_remembered() -> None:
    case = Case()
    case.job()
    for trial in range(4):
        case.pod(trial)
        case.pod(trial, message=GOOD, version=2)
        case.pod(trial, message=GOOD, version=3)  # the Job controller has counted it
    assert case.state.pods.known == {}
    assert case.trials._live == {} and case.trials._later == {}
    assert case.sweep.table.summary().ended == 4


def test_an_answer_that_is_older_than_the_watch_loses_no_result() -> None:
    case = Case(resultFrom={"logRegex": "loss=(.+)"})
    job = case.job(completed_indexes="0")
    case.pod(0, message="", version=5)  # its log is being read
    case.trials.resolve(case.sweep, job, [0], [trial_pod(0, message="", version=4)])
    assert case.sweep.table.get(0) is None


def test_a_list_that_comes_after_the_end_of_a_pod_does_not_bring_it_back() -> None:
    """Nobody would tell of its end again: its GPU would be held until the leader changes."""
    case = Case()
    job = case.job(completed_indexes="0")
    case.pod(0)
    case.state.pod_gone(PodUID("uid-job-0"))
    case.trials.resolve(case.sweep, job, [0], [trial_pod(0, version=2)])
    assert case.state.pods.known == {} and case.state.ledger.charges == {}


def test_a_trial_whose_log_is_being_read_is_not_looked_for() -> None:
    case = Case(resultFrom={"logRegex": "loss=(.+)"})
    case.job(completed_indexes="0")
    case.pod(0, message="")
    case.now += 100
    assert case.trials.overdue(3.0) == []
    case.trials.read(case.sweep, 0, Reading(TrialState.SUCCEEDED, 2.0))
    assert case.outcome(0).value == 2.0


SIGNALLED: dict[str, dict[str, Any]] = {
    "evicted": {"conditions": ({"type": "DisruptionTarget", "status": "True"},)},
    "told to stop": {
        "conditions": ({"type": CONDITION_PRUNED, "status": "True", "lastTransitionTime": CREATED},)
    },
    "deleted, as by a Job that is suspended": {"deleting": True},
}


@pytest.mark.parametrize("how", SIGNALLED)
def test_how_a_program_answers_a_signal_says_nothing_of_the_search(how: str) -> None:
    case = Case(failFastExitCodes=[42])
    case.job()
    case.pod(0, message="", code=42, **SIGNALLED[how])
    assert case.sweep.fatal is None and case.sweeps.may_start(KEY)


def test_the_next_leader_finds_the_exit_code_that_ended_a_sweep() -> None:
    case = Case(loaded=False, failFastExitCodes=[42])
    case.job(failed_indexes="0")
    case.pod(0, message="", code=42)
    case.sweep.restore(Outcome(0, TrialState.FAILED, message="stored before the status was"))
    case.sweep.loaded = True
    case.trials.loaded(case.sweep)
    assert case.sweep.verdict().reason == "FailFastExitCode"


def test_what_an_earlier_gpujob_of_that_name_left_open_fails_no_trial_of_this_one() -> None:
    case = Case()
    case.job(failed_indexes="1")
    body = gpujob_body(uid="again", parallelism=2, completions=4, sweep=RANDOM)
    case.state.gpujob_changed(gpujob_record(body))
    sweep = case.sweeps.of(KEY)
    assert sweep is not None and sweep is not case.sweep
    sweep.loaded = True
    case.job(uid_="job-again", owner_uid="again")
    case.now += 5
    assert case.trials.overdue(3.0) == []


def test_what_a_deleted_job_said_of_a_trial_does_not_hold_for_the_job_in_its_place() -> None:
    case = Case()
    old = case.job(failed_indexes="1")
    case.state.job_gone(old.uid)
    case.trials.job_gone(old.uid)
    case.job(uid_="job-again")
    case.now += 5
    assert case.trials.overdue(3.0) == []


def test_a_uid_stands_for_one_gpujob_and_not_for_the_next_of_its_name() -> None:
    case = Case()
    uid = case.sweep.uid
    assert case.sweeps.by_uid(uid) is case.sweep
    case.state.gpujob_changed(gpujob_record(gpujob_body(uid="again", completions=4, sweep=RANDOM)))
    assert case.sweeps.by_uid(uid) is None


def test_a_segment_of_thousands_of_digits_is_none() -> None:
    case = Case()
    job = segment_job()
    meta = msgspec.structs.replace(job.metadata, annotations={SEGMENT: "9" * 5000})
    record = job_record(msgspec.structs.replace(job, metadata=meta))
    assert record is not None and not case.sweep.segments.know(record)


def test_values_that_nobody_of_us_wrote_do_not_hide_the_pod() -> None:
    case = Case(algorithm="tpe")
    case.job()
    case.pod(0, hparams="[" * 100_000, message=GOOD)
    assert case.outcome(0).value == 0.5


def test_what_one_of_two_jobs_counts_has_their_widths_looked_at() -> None:
    case = Case(completions=8)
    case.job(0)
    case.changed.clear()
    case.job(0, version=2, completed_indexes="0")
    assert case.changed == []
    case.job(1, first=4)
    case.changed.clear()
    case.job(0, version=3, completed_indexes="0-2")
    assert case.changed == [KEY]
