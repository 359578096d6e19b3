"""Sweeps that go on, whatever number of trials they have."""

from typing import Any

from tests.unit.runtime.informers.test_custom_resources import project_body
from tests.unit.runtime.usage.stage import UsageStage
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.web.sweep_metrics import figures

SWEEP = {
    "trials": 100_000,
    "counts": {"running": 2, "succeeded": 30, "failed": 1},
    "best": {"trial": 7, "value": 0.25, "parameters": {"lr": "0.1"}},
}


def shown(**status: Any) -> dict[tuple[str, ...], float]:
    stage = UsageStage()
    stage.resources.project(project_body())
    stage.resources.gpujob(gpujob_body("search", status=status))
    return {
        (family.name, *sample.labels.values()): sample.value
        for family in figures(stage.state.gpujobs.values(), stage.state.projects)
        for sample in family.samples
    }


def test_trials_are_told_by_state_and_the_best_objective_once() -> None:
    seen = shown(phase="Running", sweep=SWEEP)
    of = "team-a", "search", "team-a"
    found = {key[-1]: value for key, value in seen.items() if key[0] == "gpusched_sweep_trials"}
    assert found == {
        "waiting": 99_967,
        "running": 2,
        "succeeded": 30,
        "pruned": 0,
        "failed": 1,
        "result-missing": 0,
        "objective-not-finite": 0,
    }
    assert seen["gpusched_sweep_best_objective", *of] == 0.25
    assert len(seen) == 8


def test_without_a_result_there_is_no_best_objective() -> None:
    seen = shown(phase="Running", sweep={**SWEEP, "best": None})
    assert not any(key[0] == "gpusched_sweep_best_objective" for key in seen)


def test_what_has_ended_or_is_no_sweep_has_no_series() -> None:
    assert shown(phase="Succeeded", sweep=SWEEP) == {}
    assert shown(phase="Running") == {}


def test_a_status_that_somebody_else_wrote_costs_itself() -> None:
    assert shown(phase="Running", sweep={"trials": "many"}) == {}
