from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.jobs.golden_jobs import CAP, make_input

from gpu_scheduler.jobs.conflicts import problems
from gpu_scheduler.jobs.render import render
from gpu_scheduler.jobs.write_path import choose, claims

CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a text for a list": ({"volumes": "data"}, "volumes", "must be a list"),
    "a text in a list": ({"volumes": ["data"]}, "volumes[0]", "must be an object"),
    "env of a container": (
        {"containers": [{"name": "a", "env": {"A": "1"}}]},
        "containers[0].env",
        "must be a list",
    ),
    "requests of an init container": (
        {"initContainers": [{"resources": {"requests": "1"}}]},
        "initContainers[0].resources.requests",
        "must be an object",
    ),
    "affinity": ({"affinity": {"podAffinity": []}}, "affinity.podAffinity", "must be an object"),
    "claim": (
        {"volumes": [{"persistentVolumeClaim": "data"}]},
        "volumes[0].persistentVolumeClaim",
        "must be an object",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_form_is_told_before_anything_else(case: str) -> None:
    spec, field, message = CASES[case]
    found = problems({"nodeName": "n1", **spec}, {0}, interposer=True)
    assert [(p.field, p.message) for p in found] == [(f"spec.template.spec.{field}", message)]


def objects(inner: st.SearchStrategy[Any], *keys: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(("name", *keys), inner))


values = st.recursive(
    st.none() | st.integers() | st.just("a"),
    lambda inner: st.lists(inner) | objects(inner),
    max_leaves=4,
)


def mostly(well: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return well | well | well | values


quantities = mostly(objects(values, "cpu", "nvidia.com/gpu"))
resources = mostly(objects(quantities, "requests", "limits"))
entries = mostly(st.lists(mostly(objects(values, "hostPort", "mountPath")), max_size=2))
containers = objects(entries, "env", "ports", "volumeMounts").flatmap(
    lambda c: resources.map(lambda r: {**c, "name": "main", "resources": r})
)
claim_sources = mostly(objects(values, "claimName"))
volumes = mostly(objects(claim_sources, "persistentVolumeClaim", "ephemeral"))
pod_affinity = mostly(objects(values, "requiredDuringSchedulingIgnoredDuringExecution"))
pod_specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, min_size=1, max_size=2)},
    optional={
        "initContainers": mostly(st.lists(containers, max_size=2)),
        "volumes": mostly(st.lists(volumes, max_size=2)),
        "affinity": mostly(objects(pod_affinity, "podAffinity", "podAntiAffinity")),
        "schedulingGates": entries,
        "hostNetwork": values,
        "schedulerName": values,
    },
)


def test_a_list_in_the_place_of_a_path_is_left_to_the_api_server() -> None:
    main = {"name": "main", "volumeMounts": [{"name": "data", "mountPath": []}]}
    assert not problems({"containers": [main]}, {0}, interposer=True)
    template = {"spec": {"containers": [main]}}
    assert render(make_input({"template": template, "gpu": 0.5}, cap_image=CAP))


@pytest.mark.long
@settings(deadline=None)
@given(pod_specs, objects(mostly(objects(values, "gpu-scheduler.io/job")), "labels", "annotations"))
def test_what_has_no_problem_renders(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
    if problems(spec, {0}, interposer=True):
        return
    claims(spec)
    path, _ = choose(spec, {})
    template = {"metadata": metadata, "spec": spec}
    job = make_input({"template": template, "gpu": 1}, path=path, cap_image=CAP)
    assert render(job)["kind"] == "Job"
