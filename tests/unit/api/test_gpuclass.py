"""GPUClasses and shapes as Python judges them."""

import pytest
from tests.unit.api.cases import Spec, Wrong
from tests.unit.api.class_cases import RIGHT_CLASSES, RIGHT_SHAPES, WRONG_CLASSES, WRONG_SHAPES

from gpu_scheduler.api.gpuclass import GPUClassSpec
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.validate import Problem, class_problems, problems, read


def judged(spec: Spec) -> list[Problem]:
    found = read(GPUClassSpec, spec)
    return list(found) if isinstance(found, tuple) else class_problems(found)


def judged_job(spec: Spec) -> list[Problem]:
    found = read(GPUJobSpec, spec)
    return list(found) if isinstance(found, tuple) else problems("j", "ns", found)


def says(problem: Problem) -> str:
    """Pydantic's words where they differ from those of the API server."""
    return problem.message.lower().replace("string should match", "should match")


@pytest.mark.parametrize("spec", RIGHT_CLASSES.values(), ids=RIGHT_CLASSES)
def test_a_right_class_has_no_problems(spec: Spec):
    assert judged(spec) == []


@pytest.mark.parametrize("wrong", WRONG_CLASSES.values(), ids=WRONG_CLASSES)
def test_what_is_wrong_with_a_class_is_named(wrong: Wrong):
    found = judged(wrong.spec)
    assert [p.field for p in found] == [wrong.python_field or wrong.field]
    assert wrong.says.lower() in says(found[0])


@pytest.mark.parametrize("spec", RIGHT_SHAPES.values(), ids=RIGHT_SHAPES)
def test_a_job_may_ask_for_a_shape(spec: Spec):
    assert judged_job(spec) == []


@pytest.mark.parametrize("wrong", WRONG_SHAPES.values(), ids=WRONG_SHAPES)
def test_what_does_not_go_with_a_shape_is_named(wrong: Wrong):
    found = judged_job(wrong.spec)
    assert wrong.field in [p.field for p in found]
    assert any(wrong.says.lower() in says(p) for p in found)
