"""Sweeps on a real API server: what is right passes, what is wrong is refused by name.

The specs are those of ``tests/unit/api/sweep_cases.py``, which Python judges in the unit tests.
"""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.caller import Answer, Caller
from tests.api.conftest import administrator
from tests.unit.api.cases import Spec, Wrong
from tests.unit.api.sweep_cases import RIGHT, WRONG, WRONG_FOR_SCHEMA, listed, sweep

from cluster import Running
from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.names import API_VERSION
from gpu_scheduler.sweeps.core.trials import parameters_of

ROOT = Path(__file__).parents[2]
PATH = f"/apis/{API_VERSION}/namespaces/default/gpujobs"
STRICT = "?dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def admin(control_plane: Running) -> Caller:
    return administrator(control_plane)


def gpujob(spec: Spec, name: str = "sweep") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": {"name": name}, "spec": spec}


def causes(answer: Answer) -> dict[str, str]:
    found: dict[str, str] = {}
    for cause in answer.body.get("details", {}).get("causes", ()):
        field = cause.get("field", "")
        found[field] = f"{found.get(field, '')} {cause['message']}"
    return found


@pytest.mark.parametrize("spec", RIGHT.values(), ids=RIGHT)
def test_a_right_sweep_is_accepted_and_comes_back_with_the_same_trials(admin, spec):
    answer = admin.create(PATH + STRICT, gpujob(spec))
    assert answer.ok, answer.message
    before = GPUJobSpec.model_validate(spec)
    after = GPUJobSpec.model_validate(answer.body["spec"])
    assert before.sweep is not None
    assert after.sweep is not None
    assert before.total_pods == after.total_pods
    if not before.sweep.search().adaptive:
        for trial in {0, 1 % before.total_pods, before.total_pods - 1}:
            there = parameters_of(after.sweep.search(), trial)
            assert repr(parameters_of(before.sweep.search(), trial)) == repr(there)


@pytest.mark.parametrize("wrong", (WRONG | WRONG_FOR_SCHEMA).values(), ids=WRONG | WRONG_FOR_SCHEMA)
def test_a_wrong_sweep_is_refused_with_a_message_that_names_the_field(admin, wrong: Wrong):
    answer = admin.create(PATH + STRICT, gpujob(wrong.spec))
    assert not answer.ok, "was not refused"
    found = causes(answer)
    assert wrong.field in found, answer.message
    assert wrong.says in found[wrong.field]


@pytest.fixture
def change(admin):
    """Stores a sweep, then patches its spec."""

    def run(spec: Spec, patch: dict[str, Any]) -> Answer:
        stored = admin.create(PATH, gpujob(deepcopy(spec)))
        assert stored.ok, stored.message
        return admin.patch(f"{PATH}/sweep", {"spec": patch})

    yield run
    admin.send("DELETE", f"{PATH}/sweep")


@pytest.mark.parametrize("patch", [{"completions": 41}, {"parallelism": 9}, {"suspend": True}])
def test_more_trials_may_be_asked_for_and_more_at_once(change, patch):
    answer = change(sweep(), patch)
    assert answer.ok, answer.message


@pytest.mark.parametrize("patch", [{"completions": 39}, {"completions": None}])
def test_fewer_trials_are_refused(change, patch):
    found = causes(change(sweep(), patch))
    assert found


def test_a_list_cannot_get_more_trials_than_it_has(change):
    found = causes(change(listed({"a": 1}, {"a": 2}, completions=2), {"completions": 3}))
    assert "fewer trials in the list" in found["spec.completions"]


VALUES = sweep("grid", None, parameters={"v": {"values": [1, 0.5, "x"]}, "c": {"constant": 1}})


@pytest.mark.parametrize(
    ("spec", "patch"),
    [
        (sweep(), {"seed": 1}),
        (sweep(), {"algorithm": "halton"}),
        (sweep(), {"parameters": {"lr": {"logUniform": [1e-5, 0.2]}}}),
        (sweep(), {"parameters": {"other": {"constant": 1}}}),
        (sweep(), {"objective": {"target": 1}}),
        (sweep(), {"maxFailedTrials": 3}),
        (VALUES, {"parameters": {"v": {"values": [1, 0.5, "y"]}}}),
        (VALUES, {"parameters": {"v": {"values": [1, 0.25, "x"]}}}),
        (VALUES, {"parameters": {"v": {"values": [1, 0.5]}}}),
        (VALUES, {"parameters": {"c": {"constant": 2}}}),
        (listed({"a": 1}, {"a": 2}), {"trials": [{"a": 1}, {"a": 3}]}),
        (listed({"a": 1}, {"a": 2}), {"trials": [{"a": 1}]}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_search_cannot_change_once_it_is_there(change, spec, patch):
    answer = change(spec, {"sweep": patch})
    assert not answer.ok, "was not refused"
    assert "sweep cannot be changed" in causes(answer)["spec.sweep"]


EXAMPLES = sorted((ROOT / "examples" / "sweeps").glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_accepted(admin, path):
    for body in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if body["kind"] == "GPUJob":
            body["metadata"].pop("namespace", None)
            answer = admin.create(PATH + STRICT, body)
            assert answer.ok, answer.message


def with_number(parameter: dict[str, Any], text: str) -> bytes:
    """A sweep over one parameter, in which the digits stand as they are for the text '@'."""
    spec = {"image": "a", "gpu": 0.5, "completions": 1}
    search = {"algorithm": "random", "objective": {"metric": "l"}, "parameters": {"p": parameter}}
    return json.dumps(gpujob({**spec, "sweep": search})).replace('"@"', text).encode()


@pytest.mark.parametrize(
    "parameter", [{"values": ["@", 1]}, {"constant": "@"}, {"uniform": ["@", 1]}]
)
def test_a_number_closer_to_0_than_any_double_is_0_before_a_rule_could_see_it(admin, parameter):
    """docs/sweeps.md says so. Should it be refused one day, the page is to be changed."""
    answer = admin.send("POST", PATH + STRICT, with_number(parameter, "1e-400"))
    assert answer.ok, answer.message
    (stored,) = answer.body["spec"]["sweep"]["parameters"]["p"].values()
    assert (stored[0] if isinstance(stored, list) else stored) == 0
    kept = admin.send("POST", PATH + STRICT, with_number(parameter, "5e-324"))
    (stored,) = kept.body["spec"]["sweep"]["parameters"]["p"].values()
    assert (stored[0] if isinstance(stored, list) else stored) == 5e-324


def test_where_0_is_wrong_it_is_refused_and_what_is_past_all_doubles_is_refused_everywhere(admin):
    tiny = admin.send("POST", PATH + STRICT, with_number({"logUniform": ["@", 1]}, "1e-400"))
    assert tiny.status == 422 and "above 0" in tiny.message
    huge = admin.send("POST", PATH + STRICT, with_number({"values": ["@"]}, "1e400"))
    assert huge.status in (400, 422), huge
