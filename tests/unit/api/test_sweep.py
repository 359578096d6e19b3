"""Python finds in a sweep what the CRD's rules refuse, and what they cannot see."""

from typing import Any

import pytest
from tests.unit.api.sweep_cases import (
    BATCH,
    LR,
    RIGHT,
    WRONG,
    WRONG_FOR_PYTHON,
    WRONG_FOR_SCHEMA,
    listed,
    sweep,
)

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.log_regex import LogRegexError, compiled
from gpu_scheduler.api.search import Goal, Objective
from gpu_scheduler.api.sweep import EarlyStoppingSpec, SweepSpec
from gpu_scheduler.api.validate import Problem, problems, read
from gpu_scheduler.sweeps.core.stopping import Asha, Median
from gpu_scheduler.sweeps.core.trials import parameters_of
from gpu_scheduler.sweeps.runtime.record import stopping_rule


def judge(spec: dict[str, Any], name: str = "train") -> list[Problem]:
    parsed = read(GPUJobSpec, spec)
    return list(parsed) if isinstance(parsed, tuple) else problems(name, "team-a", parsed)


def spec_of(spec: dict[str, Any]) -> GPUJobSpec:
    return GPUJobSpec.model_validate(spec)


@pytest.mark.parametrize("spec", RIGHT.values(), ids=RIGHT)
def test_a_right_sweep_has_no_problem_and_its_trials_are_known(spec):
    assert judge(spec) == []
    found = spec_of(spec)
    assert found.sweep is not None
    search = found.sweep.search()
    assert found.total_pods > 0
    if not search.adaptive:
        assert parameters_of(search, found.total_pods - 1).keys() == set(search.names)


@pytest.mark.parametrize("name", WRONG | WRONG_FOR_PYTHON)
def test_a_wrong_sweep_has_a_problem_at_the_field_that_says_what_would_be_right(name):
    wrong = (WRONG | WRONG_FOR_PYTHON)[name]
    found = judge(wrong.spec)
    field = wrong.python_field or wrong.field
    assert field in [problem.field for problem in found]
    assert any(wrong.says in p.message for p in found if p.field == field)


@pytest.mark.parametrize("name", WRONG_FOR_SCHEMA)
def test_what_the_schema_refuses_is_a_problem_too(name):
    assert judge(WRONG_FOR_SCHEMA[name].spec)


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        (sweep("grid", None, parameters={"b": BATCH, "c": {"int": [1, 4]}}), 12),
        (sweep("grid", 4, parameters={"b": BATCH, "c": {"int": [1, 4]}}), 4),
        (sweep("grid", 13, parameters={"b": BATCH, "c": {"int": [1, 4]}}), 12),
        (listed({"a": 1}, {"a": 2}, {"a": 3}), 3),
        (sweep(completions=100_000), 100_000),
    ],
)
def test_trials_are_as_many_as_asked_for_or_as_there_are(spec, total):
    assert spec_of(spec).total_pods == total


def test_numbers_are_the_same_after_a_journey_through_an_api_server():
    here = spec_of(sweep("grid", None, parameters={"b": {"values": [32.0, 0.5, 1e3]}})).sweep
    there = spec_of(sweep("grid", None, parameters={"b": {"values": [32, 0.5, 1000]}})).sweep
    assert here is not None
    assert there is not None
    assert [repr(parameters_of(s.search(), 2)) for s in (here, there)] == ["{'b': 1000}"] * 2


def test_a_boolean_and_a_text_stay_what_they_are():
    spec = spec_of(sweep("grid", None, parameters={"v": {"values": [True, 1, "1", 1.5]}})).sweep
    assert spec is not None
    assert [parameters_of(spec.search(), i)["v"] for i in range(4)] == [True, 1, "1", 1.5]
    assert parameters_of(spec.search(), 0)["v"] is True


def test_a_name_leaves_room_for_those_of_its_jobs_and_pods():
    assert judge(sweep(), name="n" * 55) == []
    (problem,) = judge(sweep(), name="n" * 56)
    assert problem.field == "metadata.name"
    assert "at most 55" in problem.message


@pytest.mark.parametrize("spec", [{"template": {}}, {"template": {"spec": {"containers": [1]}}}])
def test_a_template_that_is_none_does_not_end_in_a_traceback(spec):
    assert judge({"gpu": 1, "completions": 4, "sweep": sweep()["sweep"]} | spec)


@pytest.mark.parametrize("name", [["LR"], {"a": 1}, 3, None])
def test_a_variable_whose_name_is_none_is_left_to_the_dry_run(name):
    template = {"spec": {"containers": [{"name": "a", "env": [{"name": name, "value": "1"}]}]}}
    assert (
        judge({"gpu": 1, "completions": 4, "sweep": sweep()["sweep"], "template": template}) == []
    )


def test_values_that_tpe_stores_must_fit_into_what_a_thousand_trials_share():
    long = {"values": ["a" * 400, "b"]}
    assert judge(sweep("tpe", parameters={"a": long})) == []
    (problem,) = judge(sweep("tpe", parameters={"a": long, "b": long}))
    assert problem.field == "spec.sweep.parameters"
    assert "806 bytes together" in problem.message
    assert judge(sweep(parameters={"a": long, "b": long})) == [], "others store none"
    assert judge(sweep("tpe", parameters={f"p{i}": LR for i in range(20)})) == []


def test_a_distance_that_no_double_holds_is_nothing_for_tpe():
    wide = {"lr": {"uniform": [-1e308, 1e308]}}
    (problem,) = judge(sweep("tpe", parameters=wide))
    assert problem.field == "spec.sweep.parameters[lr].uniform"
    assert judge(sweep(parameters=wide)) == []


def test_without_a_sweep_such_texts_are_nobodys_business():
    assert judge({"image": "a", "gpu": 1, "args": ["${hparam.lr}"]}) == []


def test_the_objective_is_that_of_the_spec():
    spec = {"metric": "acc", "goal": "maximize", "target": 1, "additionalMetrics": ["f1"]}
    found = SweepSpec.model_validate({"algorithm": "random", "objective": spec})
    assert found.core_objective() == Objective("acc", Goal.MAXIMIZE, 1.0, ("f1",))
    assert SweepSpec.model_validate({"algorithm": "random"}).core_objective() is None


def test_early_stopping_has_the_rule_of_the_spec():
    median = EarlyStoppingSpec.model_validate({"type": "median", "minTrials": 1})
    asha = EarlyStoppingSpec.model_validate({"type": "asha", "reductionFactor": 2})
    loss = Objective("loss")
    assert isinstance(stopping_rule(median, loss), Median)
    rule = stopping_rule(asha, loss)
    assert isinstance(rule, Asha)
    assert [rule.report(trial, 1, float(trial)) for trial in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (r"loss=(\S+)", "epoch 3 loss=0.5 acc=1", {"loss": "0.5"}),
        (r"loss=(\S+)", "epoch 3", None),
        (r"(?P<loss>\S+) (?P<acc>\S+)?", "0.5 ", {"loss": "0.5"}),
        (r"loss=(\S+)", "x" * 5000 + "loss=1", None),
    ],
)
def test_what_a_regular_expression_finds_on_a_line(pattern, line, found):
    assert compiled(pattern, "loss")(line) == found


def test_no_expression_can_hold_up_whoever_applies_it():
    find = compiled("(a+)+$", "loss")  # exponential where an engine goes back
    assert find("a" * 4000 + "b") is None


@pytest.mark.parametrize("pattern", ["(", "no group", "(.)(.)", r"(a)\1", "(?P<other>.)"])
def test_an_expression_that_cannot_be_used_is_refused(pattern):
    with pytest.raises(LogRegexError):
        compiled(pattern, "loss")


def test_every_parameter_has_one_kind():
    assert judge(sweep(parameters={"a": {"uniform": [0, 1], "constant": 1}}))
    assert judge(sweep(parameters={"a": {}}))
    assert not judge(sweep(parameters={"a": LR}))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400, -(10**400)])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        (lambda v: {"parameters": {"lr": {"uniform": [0, v]}}}, "parameters.lr.uniform[1]"),
        (lambda v: {"parameters": {"lr": {"logUniform": [v, 1]}}}, "parameters.lr.logUniform[0]"),
        (lambda v: {"parameters": {"lr": {"values": [1, v]}}}, "parameters.lr.values[1]"),
        (lambda v: {"parameters": {"lr": {"constant": v}}}, "parameters.lr.constant"),
        (lambda v: {"parameters": {"lr": {"int": [1, v]}}}, "parameters.lr.int[1]"),
        (
            lambda v: {"algorithm": "list", "parameters": None, "trials": [{"lr": v}]},
            "trials[0].lr",
        ),
    ],
    ids=["uniform", "logUniform", "values", "constant", "int", "list"],
)
def test_a_number_that_no_double_holds_is_refused_by_its_field(
    place: Any, field: str, value: float
) -> None:
    spec = sweep(**place(value))
    found = read(GPUJobSpec, spec)
    assert isinstance(found, tuple)
    assert f"spec.sweep.{field}" in {problem.field for problem in found}
