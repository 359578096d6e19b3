"""The chart's policy for sweeps: what the CRD cannot see is refused at apply time all the same."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.caller import Answer
from tests.api.conftest import administrator
from tests.api.tenant import until
from tests.unit.api.cases import Spec, job
from tests.unit.api.sweep_cases import RIGHT, WRONG_FOR_PYTHON, listed, sweep

from cluster import Running
from gpu_scheduler.api.names import API_VERSION

ROOT = Path(__file__).parents[2]
PATH = f"/apis/{API_VERSION}/namespaces/default/gpujobs"
DRY = "?dryRun=All"
TO_THE_OPERATOR = {  # products of numbers and RE2 are beyond what CEL can do
    "a grid of more than may run",
    "a value twice",
    "a text without end",
    "a listed trial of nothing",
    "no regular expression",
    "an expression with two groups",
    "an expression that names other metrics",
}
REFUSED = {name: wrong for name, wrong in WRONG_FOR_PYTHON.items() if name not in TO_THE_OPERATOR}


def gpujob(spec: Spec) -> dict[str, Any]:
    meta = {"name": "sweep-admission"}
    return {"apiVersion": API_VERSION, "kind": "GPUJob", "metadata": meta, "spec": spec}


@pytest.fixture(scope="module")
def admin(control_plane: Running, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An administrator, once the policy has taken effect; it is gone afterwards."""
    chart = ROOT / "charts" / "gpu-scheduler"
    only = "templates/admission-sweeps.yaml"
    done = control_plane.helm("template", "sweep-admission", str(chart), "--show-only", only)
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(done.stdout)
    assert len(list(yaml.safe_load_all(done.stdout))) == 2
    control_plane.kubectl("apply", "-f", str(path))
    admin = administrator(control_plane)
    try:
        wrong = gpujob(REFUSED["a value that is a list"].spec)
        until(lambda: not admin.create(PATH + DRY, wrong).ok, "the policy takes effect")
        yield admin
    finally:
        control_plane.kubectl("delete", "-f", str(path))


def refusal(answer: Answer) -> str:
    assert not answer.ok, "was not refused"
    assert "ValidatingAdmissionPolicy" in answer.message
    return answer.message


@pytest.mark.parametrize("spec", RIGHT.values(), ids=RIGHT)
def test_a_right_sweep_passes(admin, spec):
    answer = admin.create(PATH + DRY, gpujob(spec))
    assert answer.ok, answer.message


def test_the_cases_that_are_left_to_the_operator_are_known():
    assert TO_THE_OPERATOR < WRONG_FOR_PYTHON.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_crd_cannot_see_is_refused(admin, name):
    refusal(admin.create(PATH + DRY, gpujob(REFUSED[name].spec)))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (sweep(args=["${hparam.rate}"]), "the sweep does not have; it has lr"),
        (sweep(env=[{"name": "HPARAM_LR", "value": "1"}]), "env: HPARAM_LR are set"),
        (listed({"a": 1}, {"b": 1}), "spec.sweep.trials: every trial needs the same parameters"),
    ],
)
def test_the_refusal_says_what_is_wrong(admin, spec, says):
    assert says in refusal(admin.create(PATH + DRY, gpujob(spec)))


def test_a_job_without_a_sweep_is_not_looked_at(admin):
    answer = admin.create(PATH + DRY, gpujob(job(args=["${hparam.lr}"])))
    assert answer.ok, answer.message


@pytest.mark.parametrize("trials", [[{"a": 1}, {"b": 2}], [{"b": 1}, {"b": 2}]], ids=str)
def test_names_of_listed_parameters_cannot_be_swapped(admin, trials):
    assert admin.create(PATH, gpujob(deepcopy(listed({"a": 1}, {"a": 2})))).ok
    try:
        answer = admin.patch(f"{PATH}/sweep-admission", {"spec": {"sweep": {"trials": trials}}})
        assert "spec.sweep.trials" in refusal(answer)
        changed = admin.patch(f"{PATH}/sweep-admission", {"spec": {"suspend": True}})
        assert changed.ok, changed.message
    finally:
        admin.send("DELETE", f"{PATH}/sweep-admission")


def test_a_long_list_is_within_what_a_policy_may_cost(admin):
    trials = [{"lr": i / 7, "batch": i, "opt": "adam"} for i in range(2000)]
    answer = admin.create(PATH + DRY, gpujob(listed(*trials)))
    assert answer.ok, answer.message
    trials[-1] = {"lr": 1, "batch": 1}
    assert "every trial" in refusal(admin.create(PATH + DRY, gpujob(listed(*trials))))
