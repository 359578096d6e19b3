"""TPE through Optuna: values stay with their trial, and a restart loses nothing that was stored."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpu_scheduler.api.search import (
    Algorithm,
    Constant,
    Goal,
    IntRange,
    LogUniform,
    Objective,
    Parameters,
    Search,
    Space,
    Uniform,
    Values,
    values_of,
)
from gpu_scheduler.sweeps.core.outcome import Outcome, TrialState
from gpu_scheduler.sweeps.core.rows import Header, decode, encode
from gpu_scheduler.sweeps.core.trials import parameters_of
from gpu_scheduler.sweeps.search.tpe import BEST, LARGEST, NEWEST, RUNNING, TpeStudy

LOSS = Objective("loss")
SPACE = Space(
    {
        "x": Uniform(-5.0, 5.0),
        "lr": LogUniform(1e-5, 1.0),
        "n": IntRange(1, 10, 4),
        "kind": Values(("a", True, 1, 0.5)),
        "fixed": Constant("c"),
    }
)
BOWL = Space({"x": Uniform(-5.0, 5.0), "y": Uniform(-5.0, 5.0)})


def bowl(parameters: Parameters) -> float:
    return (float(parameters["x"]) - 2) ** 2 + (float(parameters["y"]) + 1) ** 2


def ended(study: TpeStudy, trial: int, value: float, space: Space = SPACE) -> Outcome:
    parameters = values_of(study.ask(trial), space.names)
    return Outcome(trial, TrialState.SUCCEEDED, value, parameters=parameters)


def test_values_are_of_the_space_with_their_types():
    study = TpeStudy(SPACE, LOSS, 1)
    for trial in range(40):
        found = study.ask(trial)
        assert tuple(found) == SPACE.names
        assert -5 <= float(found["x"]) <= 5
        assert 1e-5 <= float(found["lr"]) <= 1
        assert found["n"] in (1, 5, 9)
        assert type(found["n"]) is int
        assert any(found["kind"] is option for option in ("a", True, 1, 0.5))
        assert found["fixed"] == "c"
        study.tell(Outcome(trial, TrialState.SUCCEEDED, float(trial)))


def test_a_trial_that_is_tried_again_has_the_same_values():
    study = TpeStudy(SPACE, LOSS, 1)
    first = study.ask(3)
    study.ask(4)
    assert study.ask(3) == first
    study.tell(ended(study, 3, 1.0))
    assert study.ask(3) == first


def test_trials_that_start_at_once_do_not_look_at_one_place():
    study = TpeStudy(BOWL, LOSS, 1)
    for trial in range(20):
        study.tell(Outcome(trial, TrialState.SUCCEEDED, bowl(study.ask(trial))))
    together = [study.ask(trial) for trial in range(20, 40)]
    assert len({each["x"] for each in together}) == 20


def test_it_finds_a_better_place_than_chance():
    study = TpeStudy(BOWL, LOSS, 3)
    best = float("inf")
    for trial in range(60):
        value = bowl(study.ask(trial))
        study.tell(Outcome(trial, TrialState.SUCCEEDED, value))
        best = min(best, value)
    random = Search(Algorithm.RANDOM, BOWL, 3)
    by_chance = min(bowl(parameters_of(random, trial)) for trial in range(60))
    assert best < by_chance
    assert best < 0.2


def test_maximize_goes_the_other_way():
    study = TpeStudy(BOWL, Objective("score", Goal.MAXIMIZE), 3)
    values = []
    for trial in range(60):
        values.append(-bowl(study.ask(trial)))
        study.tell(Outcome(trial, TrialState.SUCCEEDED, values[-1]))
    assert max(values[30:]) > max(values[:10])


def test_after_a_restart_trials_keep_their_values_and_nothing_learnt_is_lost():
    before = TpeStudy(SPACE, LOSS, 1)
    outcomes = [ended(before, trial, float(trial)) for trial in range(20)]
    for outcome in outcomes:
        before.tell(outcome)
    running = Outcome(20, TrialState.STARTED, parameters=values_of(before.ask(20), SPACE.names))
    _, stored = decode(encode(Header(0, ("loss",), SPACE.names), [*outcomes, running]))

    after = TpeStudy(SPACE, LOSS, 1, stored)
    assert [after.ask(trial) for trial in range(21)] == [before.ask(trial) for trial in range(21)]
    states = [trial.state.name for trial in after._study.trials]
    assert states == ["COMPLETE"] * 20 + ["RUNNING"]
    assert [t.value for t in after._study.trials[:20]] == [float(i) for i in range(20)]
    after.tell(ended(after, 20, 0.5))
    assert after._study.trials[20].value == 0.5


def test_after_a_restart_the_first_values_do_not_come_again():
    before = TpeStudy(SPACE, LOSS, 1)
    outcomes = [ended(before, trial, 1.0) for trial in range(3)]
    after = TpeStudy(SPACE, LOSS, 1, outcomes)
    known = [before.ask(trial)["x"] for trial in range(3)]
    assert after.ask(3)["x"] not in known


def test_values_of_another_space_are_left_out():
    wrong = [
        Outcome(0, TrialState.SUCCEEDED, 1.0, parameters=(1, 2)),
        Outcome(1, TrialState.SUCCEEDED, 1.0, parameters=("c", "zzz", 0.1, 5, 0.0)),
        Outcome(2, TrialState.SUCCEEDED, 1.0),
    ]
    assert TpeStudy(SPACE, LOSS, 1, wrong)._study.trials == []


@pytest.mark.parametrize(
    ("state", "known_as"),
    [
        (TrialState.FAILED, "FAIL"),
        (TrialState.RESULT_MISSING, "FAIL"),
        (TrialState.NOT_FINITE, "FAIL"),
        (TrialState.PRUNED, "PRUNED"),
    ],
)
def test_trials_without_a_value_are_told_too(state, known_as):
    study = TpeStudy(SPACE, LOSS, 1)
    study.ask(0)
    study.tell(Outcome(0, state))
    study.tell(Outcome(0, state))  # a second time changes nothing
    study.tell(Outcome(9, state))  # nor does one that was never asked
    assert [trial.state.name for trial in study._study.trials] == [known_as]
    stored = Outcome(0, state, parameters=values_of(study.ask(0), SPACE.names))
    again = TpeStudy(SPACE, LOSS, 1, [stored])
    assert [trial.state.name for trial in again._study.trials] == [known_as]


def looked_at(study: TpeStudy) -> list[float]:
    """The values of trials that the estimator goes by."""
    return [trial.value for trial in study._study.trials if trial.state.name == "COMPLETE"]


def many(count: int, state: TrialState = TrialState.SUCCEEDED, first: int = 0) -> list[Outcome]:
    """Ended trials, the first ones the best."""
    return [
        Outcome(trial, state, float(trial), parameters=(trial % 10 - 5.0, 0.0))
        for trial in range(first, first + count)
    ]


def test_of_very_many_trials_the_best_and_the_newest_are_looked_at():
    study = TpeStudy(BOWL, LOSS, 1, many(5000))
    assert looked_at(study) == [*range(BEST), *range(5000 - NEWEST, 5000)]
    assert study.ask(2000) == {"x": -5.0, "y": 0.0}, "all keep what they were given"
    best_last = TpeStudy(BOWL, Objective("score", Goal.MAXIMIZE), 1, many(5000))
    assert looked_at(best_last) == [*range(5000 - NEWEST - BEST, 5000)]


def test_trials_that_failed_do_not_take_the_room_of_results():
    study = TpeStudy(BOWL, LOSS, 1, [*many(200), *many(5000, TrialState.FAILED, 200)])
    assert looked_at(study) == [*range(BEST), *range(200 - NEWEST, 200)]


@pytest.mark.long
def test_a_study_does_not_grow_with_its_trials_and_still_knows_the_best():
    study = TpeStudy(BOWL, LOSS, 1)
    for trial in range(2 * LARGEST):
        study.ask(trial)
        study.tell(Outcome(trial, TrialState.SUCCEEDED, float(trial)))
        assert len(study._study.get_trials(deepcopy=False)) <= LARGEST
    assert looked_at(study)[:BEST] == [*range(BEST)]
    assert looked_at(study)[-1] == 2 * LARGEST - 1


def test_a_trial_that_runs_long_is_learnt_from_when_it_ends():
    study = TpeStudy(BOWL, LOSS, 1)
    values = study.ask(0)
    for trial in range(1, 2 * LARGEST):
        study.ask(trial)  # all run at once
    assert len(study._study.get_trials(deepcopy=False)) <= LARGEST
    study.tell(Outcome(0, TrialState.SUCCEEDED, 0.5))
    study.tell(Outcome(0, TrialState.SUCCEEDED, 0.5))
    study.tell(Outcome(2 * LARGEST - 1, TrialState.SUCCEEDED, 0.25))
    assert sorted(looked_at(study)) == [0.25, 0.5]
    assert study.ask(0) == values
    assert len([t for t in study._study.trials if t.state.name == "RUNNING"]) >= RUNNING


def test_without_optuna_it_says_how_to_get_it():
    script = (
        "import sys; sys.modules['optuna'] = None\n"
        "from gpu_scheduler.sweeps.search.tpe import TpeStudy, TpeMissingError\n"
        "from gpu_scheduler.api.search import Objective\n"
        "from gpu_scheduler.api.search import Space\n"
        "try: TpeStudy(Space({}), Objective('a'), 0)\n"
        "except TpeMissingError as error: print(error)\n"
    )
    source = Path(__file__).parents[4] / "operator"
    said = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "sweeps.tpe" in said.stdout and "pip install optuna" in said.stdout
