"""Each rule is one row: what CEL says, Python says too, or the row names why not."""

import pytest
from tests.unit.api import cases, class_cases, sweep_cases

from gpu_scheduler.api import checkpoint_rules, rules, sweep_problems, sweep_rules, validate
from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.rule import Rule, broken
from gpu_scheduler.api.validate import class_problems, problems, project_problems, read


def rows() -> list[Rule]:
    """All rules, each once."""
    found: dict[tuple[str, str, str], Rule] = {}
    for module in (rules, sweep_rules, checkpoint_rules):
        for value in vars(module).values():
            each = value if isinstance(value, tuple) else (value,)
            found |= {(r.field, r.rule, r.message): r for r in each if isinstance(r, Rule)}
    return list(found.values())


def told() -> set[str]:
    """All that Python says of what must be refused."""
    found: list[Problem] = []
    for wrong in (*cases.WRONG_JOBS.values(), *sweep_cases.WRONG.values()):
        spec = read(GPUJobSpec, wrong.spec)
        found += spec if isinstance(spec, tuple) else problems("job", "team-a", spec)
    for wrong in class_cases.WRONG_SHAPES.values():
        shaped = read(GPUJobSpec, wrong.spec)
        found += shaped if isinstance(shaped, tuple) else problems("job", "team-a", shaped)
    for wrong in class_cases.WRONG_CLASSES.values():
        kind = read(GPUClassSpec, wrong.spec)
        found += kind if isinstance(kind, tuple) else class_problems(kind)
    for wrong in cases.WRONG_PROJECTS.values():
        project = read(GPUProjectSpec, wrong.spec)
        found += project if isinstance(project, tuple) else project_problems("a", project)
    return {problem.message for problem in found}


def test_a_row_has_both_sides_or_says_why_not():
    for rule in rows():
        sides = [rule.holds is not None, bool(rule.instead), "oldSelf" in rule.rule]
        assert sum(sides) == 1, f"{rule.field} {rule.message}"
        if rule.instead:
            assert any(hasattr(m, rule.instead) for m in (validate, sweep_problems)), rule.instead


def test_of_each_row_there_is_a_case_that_python_refuses():
    said = told()
    silent = [
        rule.message
        for rule in rows()
        if rule.holds is not None and not any(text.startswith(rule.message) for text in said)
    ]
    assert silent == []


def test_a_rule_about_a_field_that_is_absent_holds():
    assert list(broken(rules.GPU, None, "spec.gpu")) == []


@pytest.mark.parametrize("name", ["a100\n", "\na100", "a100\n\n"])
def test_a_name_with_a_line_break_is_no_name_of_a_shape(name: str):
    spec = read(GPUClassSpec, {"shapes": {name: 1}})
    assert not isinstance(spec, tuple)
    (problem,) = class_problems(spec)
    assert problem.message == rules.SHAPE_NAMES


def test_who_wants_more_retries_of_a_failed_job_is_told_how_to_run_it_again() -> None:
    assert "kubectl gpu retry" in rules.GPU_JOB_FIELDS["retries"].message
