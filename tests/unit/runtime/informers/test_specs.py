"""A spec is read once for each text, and comes out as if it had been read for each job."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.runtime.informers.test_custom_resources import gpujob_specs
from tests.unit.state.builders import gpujob_body

from gpu_scheduler.api.validate import read
from gpu_scheduler.runtime.informers.custom_resources import gpujob_record
from gpu_scheduler.runtime.informers.specs import Specs
from gpu_scheduler.state.nodes.classes import ClassRecord, ClassStore


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []

    def counting(*given: Any) -> Any:
        seen.append(given)
        return read(*given)

    monkeypatch.setattr("gpu_scheduler.runtime.informers.specs.read", counting)
    return seen


def test_jobs_of_one_template_cost_one_reading(reads: list[Any]) -> None:
    specs = Specs()
    records = [gpujob_record(gpujob_body(f"job-{i}", uid=f"{i}"), None, specs) for i in range(100)]
    assert len(reads) == 1
    assert len({id(record.said) for record in records}) == 1
    assert [record.name for record in records] == [f"job-{i}" for i in range(100)]


def test_another_text_is_another_spec(reads: list[Any]) -> None:
    specs = Specs()
    half, quarter = specs.read({"image": "x", "gpu": 0.5}), specs.read({"image": "x", "gpu": 0.25})
    assert half.spec is not None and quarter.spec is not None
    assert half.spec.gpu != quarter.spec.gpu
    assert len(reads) == 2


def test_what_is_wrong_with_a_name_is_told_of_each_job(reads: list[Any]) -> None:
    specs = Specs()
    good = gpujob_record(gpujob_body("good"), None, specs)
    dotted = gpujob_record(gpujob_body("has.dot"), None, specs)
    again = gpujob_record(gpujob_body("good-2"), None, specs)
    assert (good.problem, again.problem, len(reads)) == ("", "", 1)
    assert dotted.problem.startswith("metadata.name: ")
    assert dotted.spec is None


def test_what_a_class_means_to_one_job_leaves_the_spec_of_others_as_it_was() -> None:
    specs, classes = Specs(), ClassStore()
    classes.put(ClassRecord("big", "", 1, "c", match="a100", shapes={"one": 1}))
    body = gpujob_body("a", gpu=None, shape="one")
    del body["spec"]["gpu"]
    resolved = gpujob_record(body, classes, specs)
    unknown = gpujob_record(body, None, specs)
    assert resolved.spec is not None and resolved.spec.shape is None
    assert unknown.spec is not None and unknown.spec.shape == "one"
    assert resolved.said is unknown.said


def test_what_nobody_holds_any_more_is_not_kept() -> None:
    specs = Specs()
    held = [specs.read({"image": f"x{number}", "gpu": 1}) for number in range(10)]
    assert len(specs._known) == 10
    held.clear()
    assert len(specs._known) == 0


numbers = st.integers() | st.floats() | st.booleans() | st.text(max_size=3)


@pytest.mark.long
@given(gpujob_specs | st.dictionaries(st.sampled_from(("gpu", "priority", "suspend")), numbers))
def test_a_spec_that_was_read_before_reads_the_same(spec: Any) -> None:
    specs, body = Specs(), gpujob_body()
    body["spec"] = spec
    first = gpujob_record(copy.deepcopy(body), None, specs)
    second = gpujob_record(copy.deepcopy(body), None, specs)
    alone = gpujob_record(copy.deepcopy(body))
    assert first.problem == second.problem == alone.problem
    assert first.said == second.said == alone.said


def test_numbers_beyond_64_bits_are_what_the_api_server_keeps_of_them() -> None:
    container = {"name": "main", "image": "x", "livenessProbe": {"periodSeconds": 10**20}}
    read = Specs().read({"gpu": 1, "template": {"spec": {"containers": [container]}}})
    assert read.spec is not None and read.spec.template is not None
    (kept,) = read.spec.template["spec"]["containers"]
    assert kept["livenessProbe"]["periodSeconds"] == 1e20


@pytest.mark.parametrize("depth", [300, 5000])
def test_what_is_nested_without_end_is_told_and_ends_nobody(depth: int) -> None:
    deep: Any = 1
    for _ in range(depth):
        deep = {"a": deep}
    container = {"name": "main", "image": "x", "deep": deep}
    read = Specs().read({"gpu": 1, "template": {"spec": {"containers": [container]}}})
    assert read.spec is None and "nested" in read.problem
