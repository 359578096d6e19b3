from copy import deepcopy
from typing import Any

import msgspec
import pytest
from tests.unit.jobs.golden_jobs import CASES, make_input

from gpu_scheduler.jobs.drift import TemplatedJob, changes, edited, steps
from gpu_scheduler.jobs.render import render
from gpu_scheduler.jobs.write_path import WritePath
from gpu_scheduler.kube.objects import Job

SPEC: dict[str, Any] = {"image": "a", "gpu": 0.5, "parallelism": 2, "completions": 4}


def rendered_digest(spec: dict[str, Any], **changes: Any) -> str:
    annotations = render(make_input(spec, **changes))["metadata"]["annotations"]
    return str(annotations["gpu-scheduler.io/rendered"])


@pytest.mark.parametrize("change", [{"parallelism": 4}, {"suspend": True}])
def test_what_may_change_later_does_not_change_the_digest(change: dict[str, Any]) -> None:
    assert rendered_digest({**SPEC, **change}) == rendered_digest(SPEC)


@pytest.mark.parametrize("change", [{"completions": 5}, {"retries": 9}, {"image": "b"}])
def test_what_is_fixed_changes_the_digest(change: dict[str, Any]) -> None:
    assert rendered_digest({**SPEC, **change}) != rendered_digest(SPEC)


def test_path_changes_the_digest() -> None:
    assert rendered_digest(SPEC, path=WritePath.GATE) != rendered_digest(SPEC, path=WritePath.BIND)


@pytest.mark.parametrize(
    ("change", "patch"),
    [
        ({}, {}),
        ({"priority": 90}, {}),
        ({"parallelism": 3}, {"parallelism": 3}),
        ({"suspend": True}, {"suspend": True}),
        ({"parallelism": 1, "suspend": True}, {"parallelism": 1, "suspend": True}),
        ({"completions": 5}, {"completions": 5}),
    ],
)
def test_exactly_what_differs_is_written(change: dict[str, Any], patch: object) -> None:
    existing = msgspec.convert(render(make_input(SPEC)), Job)
    assert changes(existing.spec, render(make_input({**SPEC, **change}))["spec"]) == patch


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({"suspend": True}, [{"suspend": True}]),
        ({"completions": 4}, [{"completions": 4, "parallelism": 4}, {"parallelism": 2}]),
        ({"completions": 2}, [{"completions": 2, "parallelism": 2}]),
        (
            {"completions": 4, "parallelism": 3, "suspend": False},
            [{"completions": 4, "parallelism": 4, "suspend": False}, {"parallelism": 3}],
        ),
    ],
)
def test_completions_are_written_together_with_parallelism(
    fields: dict[str, Any], written: list[dict[str, Any]]
) -> None:
    existing = msgspec.convert(render(make_input(SPEC)), Job)
    assert list(steps(existing.spec, fields)) == written


def stored(job: dict[str, Any]) -> TemplatedJob:
    """A Job as the API server has it: with labels of its own."""
    kept = deepcopy(job)
    labels = kept["spec"]["template"]["metadata"].setdefault("labels", {})
    labels |= {"batch.kubernetes.io/job-name": "x", "job-name": "x", "controller-uid": "u"}
    return msgspec.convert(kept, TemplatedJob)


@pytest.mark.parametrize("case", CASES)
def test_what_nobody_changed_is_as_it_was(case: str) -> None:
    job = render(CASES[case])
    assert edited(stored(job), job) == []


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("spec", "nodeSelector", {"a": "b"}),
        ("spec", "tolerations", [{"operator": "Exists"}]),
        ("spec", "affinity", {"nodeAffinity": {}}),
        ("spec", "schedulingGates", []),
        ("metadata", "annotations", {"a": "b"}),
        ("metadata", "labels", {"a": "b"}),
    ],
)
def test_what_may_change_while_a_job_is_suspended_is_compared(
    part: str, field: str, value: Any
) -> None:
    job = render(CASES["gate_path"])
    changed = deepcopy(job)
    changed["spec"]["template"][part][field] = value
    assert edited(stored(changed), job) == [f"spec.template.{part}.{field}"]


def test_a_job_that_an_earlier_version_rendered_is_not_judged() -> None:
    job = render(CASES["gate_path"])
    earlier = deepcopy(job)
    earlier["metadata"]["annotations"]["gpu-scheduler.io/rendered"] = "another"
    earlier["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert edited(stored(earlier), job) == []
