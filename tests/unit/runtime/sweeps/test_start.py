"""What the write that places a trial says of it."""

import json

import pytest
from tests.unit.runtime.sweeps.cases import KEY, Case, trial_pod
from tests.unit.state.builders import make_place

from gpu_scheduler.adaptive.tpe import TpeMissingError, TpeStudy
from gpu_scheduler.api.names import HPARAMS, REPORT_URL, TRIAL, TRIALS
from gpu_scheduler.core.model.decision import Place
from gpu_scheduler.core.model.request import JobKey
from gpu_scheduler.core.sweeps.trials import parameters_of
from gpu_scheduler.jobs.write import NotPlaceableError
from gpu_scheduler.runtime.sweeps.start import Start


def place(pod: str = "job-0") -> Place:
    return make_place(pod)


def waiting(case: Case, trial: int, name: str = "", *, number: int = 0, first: int = 0) -> None:
    pod = trial_pod(trial, name, number=number, first=first, node="", grants=(), phase="Pending")
    case.state.pod_changed(pod)


def test_a_trial_gets_the_values_of_its_number_and_says_them() -> None:
    case = Case(completions=8)
    case.job(1, first=4)
    waiting(case, 6, "job-6", number=1, first=4)
    case.sweeps.report_url = lambda sweep, trial: f"http://x/{sweep.uid}/{trial}"
    notes = Start(case.state, case.sweeps).annotations(place("job-6"))
    assert (notes[TRIAL], notes[TRIALS]) == ("6", "8")
    assert json.loads(notes[HPARAMS]) == parameters_of(case.sweep.search, 6)
    assert notes[REPORT_URL] == f"http://x/{case.sweep.uid}/6"


def test_a_pod_of_no_sweep_gets_nothing() -> None:
    case = Case()
    assert Start(case.state, case.sweeps).annotations(make_place(job="team-a/other")) == {}


def test_an_adaptive_trial_that_is_tried_again_keeps_what_it_had() -> None:
    case = Case(algorithm="tpe")
    case.job()
    start = Start(case.state, case.sweeps)
    waiting(case, 0, "first")
    waiting(case, 1, "other")
    first = start.annotations(place("first"))[HPARAMS]
    assert start.annotations(place("other"))[HPARAMS] != first
    waiting(case, 0, "second")
    assert start.annotations(place("second"))[HPARAMS] == first
    assert case.sweep.parameters(0) == json.loads(first)


def test_the_next_leader_gives_an_adaptive_trial_what_its_pod_says() -> None:
    case = Case(algorithm="tpe")
    case.job()
    case.pod(0, "first", hparams='{"lr": 0.125}')
    waiting(case, 0, "second")
    notes = Start(case.state, case.sweeps).annotations(place("second"))
    assert json.loads(notes[HPARAMS]) == {"lr": 0.125}


@pytest.mark.parametrize("loaded", [True, False])
def test_nothing_starts_that_is_not_to_start(loaded: bool) -> None:
    case = Case(loaded=loaded, maxFailedTrials=0, failFastExitCodes=[9])
    case.job()
    if loaded:
        case.pod(1, message="", code=9)
    waiting(case, 0)
    with pytest.raises(NotPlaceableError, match="trial 0 is not to start"):
        Start(case.state, case.sweeps).annotations(place())


def test_a_pod_of_a_job_that_is_no_segment_is_not_placed() -> None:
    case = Case()
    waiting(case, 0)
    with pytest.raises(NotPlaceableError, match="no segment"):
        Start(case.state, case.sweeps).annotations(place())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OverflowError("Range exceeds valid bounds"), "spec.sweep.parameters: no values for"),
        (TpeMissingError("needs Optuna"), "spec.sweep.algorithm: no values for trial 0: needs"),
    ],
)
def test_a_search_without_values_stops_alone_and_says_why(
    monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    def fails(self: TpeStudy, trial: int) -> None:
        raise error

    monkeypatch.setattr(TpeStudy, "ask", fails)
    case = Case(algorithm="tpe")
    changed: list[JobKey] = []
    case.job()
    waiting(case, 0)
    start = Start(case.state, case.sweeps, changed=changed.append)
    with pytest.raises(NotPlaceableError, match=says):
        start.annotations(place())
    assert case.sweep.unsearchable.startswith(says)
    assert changed == [KEY]
