"""Parameters reach the program as variables, arguments and a file; what the Job says of them is in
the golden files ``sweep_*``."""

import json
import re
from typing import Any

import pytest
from tests.unit.jobs.golden_jobs import SWEEP, make_input

from gpu_scheduler.api.hparam_refs import env_name, references
from gpu_scheduler.api.names import REPORT_URL
from gpu_scheduler.api.segments import Segment
from gpu_scheduler.jobs.annotation import well_formed
from gpu_scheduler.jobs.hparams import annotations
from gpu_scheduler.jobs.render import render

PARAMETERS = {"lr": 1e-5, "batch-size": 32, "opt.name": "adam", "nesterov": True}


def rendered(**fields: Any) -> dict[str, Any]:
    spec = {"image": "a", "gpu": 0.5, "completions": 40, "sweep": SWEEP} | fields
    return render(make_input(spec, name="search"))


def main_container(job: dict[str, Any]) -> dict[str, Any]:
    container: dict[str, Any] = job["spec"]["template"]["spec"]["containers"][0]
    return container


def program_sees(job: dict[str, Any], placed: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Variables and arguments as a node makes them: in order, $(NAME) expanded, $$ for a dollar."""
    container, seen = main_container(job), {}

    def expand(text: str) -> str:
        known = seen
        return re.sub(
            r"\$(\$|\(([^)]+)\))",
            lambda m: "$" if m[1] == "$" else known.get(m[2], m[0]),
            text,
        )

    for entry in container["env"]:
        if "value" in entry:
            seen[entry["name"]] = expand(entry["value"])
            continue
        path = entry["valueFrom"]["fieldRef"]["fieldPath"]
        seen[entry["name"]] = placed.get(path.split("'")[1], "")
    return seen, [expand(text) for text in container.get("args", ())]


def test_the_program_sees_its_values_in_variables_arguments_and_its_own_env():
    job = rendered(
        args=[
            "--lr=${hparam.lr}",
            "${trialParameters.batch-size}",
            "$${hparam.lr}",
            "$(HPARAM_LR)",
        ],
        env=[{"name": "RATE", "value": "r${hparam.lr}"}, {"name": "AGAIN", "value": "$(RATE)"}],
    )
    placed = annotations(7, 40, {"lr": 1e-5, "batch-size": 32}) | {REPORT_URL: "http://x/y"}
    seen, args = program_sees(job, placed)
    assert args == ["--lr=1e-05", "32", "${hparam.lr}", "1e-05"]
    assert (seen["HPARAM_LR"], seen["HPARAM_BATCH_SIZE"]) == ("1e-05", "32")
    assert (seen["RATE"], seen["AGAIN"]) == ("r1e-05", "r1e-05")
    assert {seen[name] for name in ("GPUJOB_TRIAL", "POD_INDEX", "GPUJOB_INDEX")} == {"7"}
    assert seen["GPUJOB_COMPLETIONS"] == "40"
    assert seen["GPUJOB_REPORT_URL"] == "http://x/y"
    assert seen["GPUJOB_RESULT_FILE"] == "/dev/termination-log"


@pytest.mark.parametrize("name", ["GPUJOB_TRIAL", "GPUJOB_RESULT_FILE", "GPUJOB_REPORT_URL"])
def test_nobody_sets_our_variables_for_himself(name):
    seen, _ = program_sees(rendered(env=[{"name": name, "value": "mine"}]), {})
    assert seen[name] != "mine"


def test_a_pod_index_of_the_users_own_wins():
    seen, _ = program_sees(rendered(env=[{"name": "POD_INDEX", "value": "mine"}]), {})
    assert seen["POD_INDEX"] == "mine"


def test_the_file_holds_all_values_with_their_types():
    job = rendered()
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    fields = {
        item["path"]: item["fieldRef"]["fieldPath"] for item in volume["downwardAPI"]["items"]
    }
    placed = annotations(0, 40, PARAMETERS)
    text = placed[fields["hparams.json"].split("'")[1]]
    assert json.loads(text) == PARAMETERS
    assert list(json.loads(text)) == sorted(PARAMETERS)
    seen, _ = program_sees(job, placed)
    assert seen["GPUJOB_HPARAMS_FILE"] == "/etc/gpu-scheduler/hparams.json"


def test_annotations_hold_all_values_and_their_keys_are_valid():
    placed = annotations(1042, 2000, PARAMETERS)
    assert all(well_formed(key) for key in placed)
    assert placed["gpu-scheduler.io/trial"] == "1042"
    assert json.loads(placed["gpu-scheduler.io/hparams"]) == PARAMETERS
    assert placed["gpu-scheduler.io/hparam.nesterov"] == "true"


def test_each_segment_is_a_job_of_its_own_that_says_which_trials_it_has():
    spec = {"image": "a", "gpu": 0.5, "completions": 2500, "parallelism": 1500, "sweep": SWEEP}
    first = render(make_input(spec, name="search"))
    last = render(make_input(spec, name="search", segment=Segment(2, 2000, 500)))
    assert [job["metadata"]["name"] for job in (first, last)] == ["search-s0", "search-s2"]
    counts = [(job["spec"]["completions"], job["spec"]["parallelism"]) for job in (first, last)]
    assert counts == [(1000, 1000), (500, 500)]
    notes = last["metadata"]["annotations"]
    assert (notes["gpu-scheduler.io/segment"], notes["gpu-scheduler.io/first-trial"]) == (
        "2",
        "2000",
    )


def test_more_trials_later_leave_the_jobs_that_exist_as_they_are():
    spec = {"image": "a", "gpu": 0.5, "sweep": SWEEP}
    jobs = [
        render(make_input(spec | {"completions": n}, segment=Segment(0, 0, 40))) for n in (40, 60)
    ]
    assert jobs[0] == jobs[1]


def test_a_job_without_a_sweep_has_none_of_this():
    text = json.dumps(render(make_input({"image": "a", "gpu": 0.5, "args": ["${hparam.lr}"]})))
    assert "${hparam.lr}" in text
    assert "HPARAM" not in text
    assert "onExitCodes" not in text


@pytest.mark.parametrize(
    ("name", "variable"),
    [("lr", "HPARAM_LR"), ("opt.weight-decay", "HPARAM_OPT_WEIGHT_DECAY"), ("b_1", "HPARAM_B_1")],
)
def test_the_variable_of_a_parameter(name, variable):
    assert env_name(name) == variable


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("${hparam.a}${trialParameters.b}", ["a", "b"]),
        ("$${hparam.a} $$${hparam.b}", ["b"]),
        ("${hparam} ${other.a} $(HPARAM_A) ${hparam.", []),
        ("${hparam.}", [""]),
    ],
)
def test_what_refers_to_a_parameter(text, names):
    assert list(references(text)) == names
