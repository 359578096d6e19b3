"""Whose exit code ends a sweep: a container of the GPUJob, not what stands beside it."""

from typing import Any

import pytest
from tests.unit.state.builders import make_pod

from gpu_scheduler.api.gpujob import GPUJobSpec
from gpu_scheduler.api.requests import program_containers
from gpu_scheduler.jobs.hparams import MOST_RULES, fail_fast_rules
from gpu_scheduler.sweeps.runtime.endings import ending, fatal_code

TEMPLATE = {
    "spec": {
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "fetch"}],
        "containers": [{"name": "main", "image": "x"}, {"name": "log", "image": "x"}],
    }
}
SPEC = GPUJobSpec.model_validate({"gpu": 0.5, "template": TEMPLATE})


def ended(name: str, code: int) -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code}}}


@pytest.mark.parametrize(
    ("name", "fatal"),
    [("main", 143), ("log", 143), ("fetch", 143), ("proxy", None), ("istio-proxy", None)],
)
def test_an_exit_code_counts_by_the_container_that_has_it(name: str, fatal: int | None) -> None:
    init = name in ("proxy", "fetch")
    pod = make_pod(
        phase="Failed",
        init_containers=TEMPLATE["spec"]["initContainers"],
        containerStatuses=[ended("main", 1)] + ([] if init else [ended(name, 143)]),
        initContainerStatuses=[ended(name, 143)] if init else [],
    )
    assert fatal_code(ending(pod), {143}, program_containers(SPEC)) == fatal


def test_the_job_of_a_sweep_looks_at_the_same_containers() -> None:
    rules = fail_fast_rules([143, 42], program_containers(SPEC))
    assert [rule["onExitCodes"]["containerName"] for rule in rules] == ["main", "log", "fetch"]
    assert {tuple(rule["onExitCodes"]["values"]) for rule in rules} == {(42, 143)}
    short = GPUJobSpec.model_validate({"gpu": 0.5, "image": "x"})
    (rule,) = fail_fast_rules([3], program_containers(short))
    assert rule["onExitCodes"]["containerName"] == "main"


def test_of_more_containers_than_a_policy_has_rules_for_all_count() -> None:
    (rule,) = fail_fast_rules([3], [str(n) for n in range(MOST_RULES + 1)])
    assert rule["onExitCodes"] == {"operator": "In", "values": [3]}
