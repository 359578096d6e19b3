"""Python finds in a spec what the CRD's rules refuse, and what they cannot see."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.api.cases import (
    RIGHT_JOBS,
    RIGHT_PROJECTS,
    WRONG_JOBS,
    WRONG_PROJECTS,
    Wrong,
    job,
    long_job,
    project,
)

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.gpuproject import GPUProjectSpec
from gpu_scheduler.api.parts import parts
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.api.requests import device_requests
from gpu_scheduler.api.validate import problems, project_problems, read


def judge(spec: dict[str, Any], name: str = "train") -> list[Problem]:
    parsed = read(GPUJobSpec, spec)
    return list(parsed) if isinstance(parsed, tuple) else problems(name, "team-a", parsed)


def judge_project(spec: dict[str, Any], name: str = "team-a") -> list[Problem]:
    parsed = read(GPUProjectSpec, spec)
    return list(parsed) if isinstance(parsed, tuple) else project_problems(name, parsed)


@pytest.mark.parametrize("spec", RIGHT_JOBS.values(), ids=RIGHT_JOBS)
def test_a_right_job_has_no_problem_and_its_devices_are_known(spec):
    assert judge(spec) == []
    found = parts(GPUJobSpec.model_validate(spec))
    assert any(device_requests(part.spec) for part in found)


@pytest.mark.parametrize("wrong", WRONG_JOBS.values(), ids=WRONG_JOBS)
def test_a_wrong_job_has_a_problem_at_the_field(wrong: Wrong):
    found = judge(wrong.spec)
    assert (wrong.python_field or wrong.field) in [problem.field for problem in found]


@pytest.mark.parametrize("name", [n for n, w in WRONG_JOBS.items() if "equal to" not in w.says])
def test_a_problem_says_what_would_be_right(name):
    wrong = WRONG_JOBS[name]
    assert any(wrong.says in problem.message for problem in judge(wrong.spec))


@pytest.mark.parametrize("spec", RIGHT_PROJECTS.values(), ids=RIGHT_PROJECTS)
def test_a_right_project_has_no_problem(spec):
    assert judge_project(spec) == []


@pytest.mark.parametrize("wrong", WRONG_PROJECTS.values(), ids=WRONG_PROJECTS)
def test_a_wrong_project_has_a_problem_at_the_field(wrong: Wrong):
    found = judge_project(wrong.spec)
    assert (wrong.python_field or wrong.field) in [problem.field for problem in found]


@pytest.mark.parametrize(
    ("length", "completions", "fits"),
    [(61, 1, True), (61, 10, True), (62, 1, False), (61, 11, False), (60, 100, True)],
)
def test_name_and_highest_index_fit_a_dns_label(length, completions, fits):
    found = judge(job(completions=completions), name="n" * length)
    assert [problem.field for problem in found] == ([] if fits else ["metadata.name"])


def test_a_name_that_is_too_long_is_told_how_long_it_may_be():
    (problem,) = judge(job(completions=4), name="n" * 63)
    assert str(problem) == (
        "metadata.name: has 63 characters; with 4 pods (-3 is appended for the last) "
        "at most 61 are possible"
    )


def test_without_completions_the_highest_index_comes_from_parallelism():
    assert judge(job(parallelism=11), name="n" * 61)


def test_a_dot_in_the_name_is_a_problem():
    (problem,) = judge(job(), name="my.job")
    assert problem.field == "metadata.name"


def test_a_project_name_that_no_label_can_hold_is_a_problem():
    (problem,) = judge_project(project(), name="p" * 64)
    assert problem.field == "metadata.name"


def test_an_unknown_container_is_told_which_there_are():
    (problem,) = judge(
        long_job(
            {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}},
            gpu=None,
            containers=[{"name": "z", "gpu": 1}],
        )
    )
    assert problem.message == "no container is named z; the pod has a, b"


INIT_POD = {
    "spec": {
        "initContainers": [{"name": "fetch"}, {"name": "cache", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}],
    }
}


def test_a_sidecar_may_have_gpus_and_an_init_container_that_ends_may_not():
    (problem,) = judge(
        long_job(
            INIT_POD,
            gpu=None,
            containers=[{"name": "cache", "gpu": 1}, {"name": "fetch", "gpu": 1}],
        )
    )
    assert problem.field == "spec.containers[1].name"
    assert "fetch ends before the others start" in problem.message
    assert "restartPolicy Always" in problem.message


@pytest.mark.parametrize("odd", [7, ["a"], [{"restartPolicy": "Always"}], {"name": "a"}])
def test_init_containers_that_are_none_are_passed_over(odd):
    template = {"spec": {"initContainers": odd, "containers": [{"name": "a"}]}}
    assert judge(long_job(template, gpu=None, containers=[{"name": "a", "gpu": 1}])) == []


def test_a_container_listed_twice_is_a_problem():
    (problem,) = judge(job(gpu=None, containers=[{"name": "main", "gpu": 0.5}] * 2))
    assert str(problem) == "spec.containers[1].name: main is listed twice"


@pytest.mark.parametrize("template", [{}, {"spec": 7}, {"spec": {"containers": ["a"]}}])
def test_a_template_that_is_no_pod_is_a_problem_not_a_crash(template):
    found = judge(long_job(template, gpu=None, containers=[{"name": "a", "gpu": 1}]))
    assert found and all(p.field.startswith("spec.template.spec.containers") for p in found)


def test_no_restart_policy_is_as_good_as_none():
    pod = {"containers": [{"name": "a"}], "restartPolicy": None}
    assert judge(long_job({"spec": pod}, gpu=0.5)) == []


def test_a_misspelt_spec_of_a_template_is_named_before_what_it_lacks():
    found = judge(long_job({"Spec": {"containers": [{"name": "a"}]}}))
    assert str(found[0]) == (
        "spec.template.Spec: unknown field; a pod template has metadata and spec"
    )


@pytest.mark.parametrize("gpu", [True, "half", [], {}, float("nan"), float("inf")])
def test_what_is_no_number_of_gpus_is_a_problem_not_a_crash(gpu):
    assert [problem.field for problem in judge(job(gpu=gpu))] == ["spec.gpu"]


def test_a_wrong_type_deep_inside_is_named_by_its_path():
    found = judge(job(gpu=None, containers=[{"name": "main", "gpu": "x"}]))
    assert [problem.field for problem in found] == ["spec.containers[0].gpu"]


@given(st.integers(1, 999))
def test_every_share_in_thousandths_is_right_and_exact(milli):
    spec = job(gpu=milli / 1000)
    assert judge(spec) == []
    (request,) = device_requests(GPUJobSpec.model_validate(spec))
    assert request.milli == milli


words = st.sampled_from(["", "main", "spec", "containers", "name", "gpu", "0.5", "1Gi", "1.5"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(
            "image template gpu gpuMemory containers gpuDevices env roles gang topology".split()
        ),
        json_values,
    )
)
def test_whatever_is_stored_judging_it_never_crashes_and_no_problem_means_usable(spec):
    if judge(spec) == []:
        found = parts(GPUJobSpec.model_validate(spec))
        assert any(device_requests(part.spec) for part in found)
