"""What a status says of a sweep, and how large that can become."""

import json
from typing import Any

from tests.unit.sweeps.runtime.cases import Case

from gpu_scheduler.api.gpujob import Phase
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.runtime.record import Sweep
from gpu_scheduler.sweeps.runtime.status import judged

NOW = "2026-01-02T00:00:00Z"


def shown(sweep: Sweep, running: int = 0) -> Any:
    return judged(sweep, running).status.to_json()


def test_counts_best_top_and_errors() -> None:
    case = Case(completions=20)
    case.job(size=20)
    for trial in range(12):
        case.sweep.put(Outcome(trial, TrialState.SUCCEEDED, abs(trial - 5.0)))
    for trial in range(12, 19):
        case.sweep.put(Outcome(trial, TrialState.FAILED, message=f"why {trial}"))
    status = shown(case.sweep, running=1)
    assert status["trials"] == 20
    assert status["counts"] == {
        "running": 1,
        "succeeded": 12,
        "pruned": 0,
        "failed": 7,
        "resultMissing": 0,
        "objectiveNotFinite": 0,
    }
    assert [t["trial"] for t in status["top"]] == [5, 4, 6, 3, 7, 2, 8, 1, 9, 0]
    assert status["best"]["trial"] == 5 and status["best"]["parameters"].keys() == {"lr"}
    assert [e["message"] for e in status["errors"]] == [f"why {t}" for t in (18, 17, 16, 15, 14)]


def test_a_status_stays_below_20_kb_whatever_is_in_the_sweep() -> None:
    """64 parameters with names and values as long as they may be, in all of the best ten."""
    long = {f"p{i:02}{'x' * 46}": {"constant": f"{i}" + "ä" * 1000} for i in range(64)}
    case = Case(completions=100, parameters=long)
    case.job(size=100)
    for trial in range(100):
        state = TrialState.SUCCEEDED if trial < 50 else TrialState.RESULT_MISSING
        value = float(trial) / 3 if trial < 50 else None
        case.sweep.put(Outcome(trial, state, value, message="ü" * 1000))
    job = case.state.gpujobs[case.sweep.key]
    status = gpujob_status(
        job,
        (),
        (),
        project=None,
        now=NOW,
        known=JobContext(sweep=judged(case.sweep, 0)),
    )
    size = len(json.dumps(status.to_json(), ensure_ascii=False).encode())
    assert 10_000 < size < 20_000, size


def test_of_parameters_the_best_shows_all_names_since_a_merge_patch_keeps_old_ones() -> None:
    long = {f"p{i:02}{'x' * 46}": {"constant": "y" * 1000} for i in range(64)}
    case = Case(parameters=long)
    case.job()
    case.sweep.put(Outcome(0, TrialState.SUCCEEDED, 1.0))
    status = shown(case.sweep)
    assert status["best"]["parameters"].keys() == long.keys()
    assert 0 < len(status["top"][0]["parameters"]) < 64


def test_a_sweep_that_succeeded_says_how_also_before_its_results_are_read_again() -> None:
    case = Case(completions=3)
    case.job(size=3)
    for trial, state in enumerate([TrialState.SUCCEEDED, TrialState.FAILED, TrialState.PRUNED]):
        case.sweep.put(Outcome(trial, state, 1.0))
    job = case.state.gpujobs[case.sweep.key]
    now: Any = {"project": None, "now": NOW}
    status = gpujob_status(
        job, (), (), **now, known=JobContext(sweep=judged(case.sweep, 0))
    ).to_json()
    assert (status["phase"], status["message"]) == ("Succeeded", "3 trials ended, 1 failed")
    complete = next(c for c in status["conditions"] if c["type"] == "Complete")
    assert complete["message"] == "3 trials ended, 1 failed"
    assert status["pods"] == {"pending": 0, "running": 0, "succeeded": 2, "failed": 1}
    job.status = status
    assert gpujob_status(job, (), (), **now).to_json() == status


def test_a_grid_that_was_to_have_more_trials_than_there_are_runs_all_and_says_so() -> None:
    case = Case(
        completions=9, algorithm="grid", parameters={"lr": {"values": [1, 2]}, "b": {"int": [1, 3]}}
    )
    assert case.sweep.completions == 6
    job = case.state.gpujobs[case.sweep.key]
    job.templates = {}
    status = gpujob_status(job, [], [], project=None, now="2026-01-01T00:00:00Z")
    (accepted,) = (c for c in status.conditions if c.type == "Accepted")
    assert accepted.status == "True"
    assert accepted.message.startswith("spec.completions is 9, but the grid has 6 trials")
    for trial in range(6):
        case.sweep.put(Outcome(trial, TrialState.SUCCEEDED, 1.0))
    assert judged(case.sweep, 0).ended is Phase.SUCCEEDED
