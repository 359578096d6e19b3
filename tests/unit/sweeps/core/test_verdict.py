"""When a sweep has succeeded, when it has failed, and when nothing more may start."""

from tests.unit.sweeps.core.builders import LOSS, broken, done

from gpu_scheduler.api.search import Objective, SweepReason
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.table import Table
from gpu_scheduler.sweeps.core.verdict import FatalExit, SweepPhase, SweepVerdict, judge


def verdict(*outcomes: Outcome, completions: int = 4, running: int = 0, **rules) -> SweepVerdict:
    objective = rules.pop("objective", LOSS)
    summary = Table(objective, outcomes).summary()
    return judge(summary, completions=completions, running=running, **rules)


def test_it_goes_on_while_trials_are_left():
    found = verdict(done(0, 1.0), done(1, 1.0), done(2, 1.0), running=1)
    assert found == SweepVerdict(SweepPhase.RUNNING)
    assert found.may_start


def test_it_succeeds_when_all_have_ended_and_failures_are_few():
    found = verdict(*(done(i, 1.0) for i in range(3)), broken(3), max_failed=1)
    assert (found.phase, found.reason) == (SweepPhase.SUCCEEDED, SweepReason.ALL_TRIALS_ENDED)
    assert found.message == "4 trials ended, 1 failed"


def test_it_fails_at_once_when_one_more_failed_than_may():
    found = verdict(broken(0), broken(1), completions=1000, running=8, max_failed=1)
    assert (found.phase, found.reason) == (SweepPhase.FAILED, SweepReason.TOO_MANY_FAILED)
    assert not found.may_start
    assert verdict(broken(0), completions=1000, max_failed=1).may_start


def test_none_may_fail_where_the_rule_is_zero():
    assert verdict(broken(0), max_failed=0).reason is SweepReason.TOO_MANY_FAILED


def test_trials_without_a_usable_result_count_as_failed():
    bad = [Outcome(0, TrialState.RESULT_MISSING), Outcome(1, TrialState.NOT_FINITE)]
    assert verdict(*bad, max_failed=1).reason is SweepReason.TOO_MANY_FAILED
    assert verdict(*bad, max_failed=2).phase is SweepPhase.RUNNING


def test_without_a_rule_any_number_may_fail_but_not_all():
    some = [*(broken(i) for i in range(3)), done(3, 1.0)]
    assert verdict(*some).phase is SweepPhase.SUCCEEDED
    assert verdict(*(broken(i) for i in range(4))).reason is SweepReason.NONE_SUCCEEDED


def test_the_commonest_cause_of_what_failed_is_part_of_the_sentence():
    missing = [Outcome(i, TrialState.RESULT_MISSING, message=f"no loss ({i})") for i in range(3)]
    found = verdict(broken(3), *missing)
    assert found.message == (
        "none of 4 trials succeeded; most often ResultMissing (3): no loss (2)"
    )
    found = verdict(*missing, done(3, 1.0), max_failed=2)
    assert found.message == (
        "3 trials failed, maxFailedTrials is 2; most often ResultMissing (3): no loss (2)"
    )
    assert " such as ResultMissing (2): no loss (1)" in (
        verdict(*missing[:2], broken(2), broken(3)).message
    )
    assert verdict(*(broken(i) for i in range(4))).message.startswith(
        "none of 4 trials succeeded; most often Failed (4)"
    )


def test_pruned_trials_alone_are_no_success():
    pruned = [Outcome(i, TrialState.PRUNED) for i in range(4)]
    assert verdict(*pruned).reason is SweepReason.NONE_SUCCEEDED
    assert verdict(*pruned).message == "none of 4 trials succeeded"
    assert verdict(*pruned[:3], done(3, 1.0), max_failed=0).phase is SweepPhase.SUCCEEDED


def test_a_fatal_exit_code_ends_it():
    found = verdict(done(0, 1.0), broken(1), running=2, fatal=FatalExit(1, 42))
    assert (found.phase, found.reason) == (SweepPhase.FAILED, SweepReason.FAIL_FAST)
    assert found.message == "trial 1 ended with exit code 42 (failFastExitCodes)"


def test_after_the_target_nothing_starts_and_what_runs_may_finish():
    objective = Objective("val_loss", target=0.02)
    waits = verdict(done(0, 0.01), running=3, objective=objective, completions=100)
    assert (waits.phase, waits.reason) == (SweepPhase.RUNNING, SweepReason.TARGET_REACHED)
    assert not waits.may_start
    ended = verdict(done(0, 0.01), running=0, objective=objective, completions=100)
    assert ended.phase is SweepPhase.SUCCEEDED
    assert ended.message == "trial 0 reached the target with 0.01"


def test_a_sweep_that_gets_more_trials_goes_on():
    outcomes = [done(i, 1.0) for i in range(4)]
    assert verdict(*outcomes).phase is SweepPhase.SUCCEEDED
    assert verdict(*outcomes, completions=5).may_start


def test_a_started_trial_is_not_an_ended_one():
    started = Outcome(3, TrialState.STARTED, parameters=(1,))
    assert (
        verdict(*(done(i, 1.0) for i in range(3)), started, running=1).phase is SweepPhase.RUNNING
    )
