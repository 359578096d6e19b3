"""However long what somebody wrote is, a problem quotes no more than shows what is meant."""

import re
from typing import Any

import pytest
from tests.unit.state.builders import gpujob_body, make_pod

from gpu_scheduler.api import names
from gpu_scheduler.api.problem import Problem
from gpu_scheduler.runtime.informers.custom_resources import gpujob_record
from gpu_scheduler.state.pods.shares import share_of

LONG = "x" * 5000


def test_what_is_short_stays_as_it_is() -> None:
    problem = Problem("spec.gpu", "must be above 0")
    assert str(problem) == "spec.gpu: must be above 0"


def test_what_is_long_is_cut() -> None:
    problem = Problem(f"spec.{LONG}", f"{LONG} is no quantity; {'many words ' * 500}")
    assert len(problem.field) == 200 and len(problem.message) <= 1000
    assert problem.message.startswith("x" * 99 + "… is no quantity; many words")


def quotes_little(said: str) -> bool:
    return bool(said) and len(said) < 1400 and not re.search("x{201}", said)


@pytest.mark.parametrize(
    "spec",
    [
        {"gpu": LONG},
        {"gpu": 0.5, "gpuMemory": LONG},
        {"gpu": 0.5, LONG: 1, "priority": LONG},
        {"gpu": 0.5, "type": LONG},
        {"gpu": 0.5, "resources": {"limits": {"cpu": LONG}}},
        {"gpu": 0.5, "resources": {"limits": {LONG: LONG}}},
        {"gpu": 0.5, "env": [{"name": LONG, "value": 1}]},
        {"containers": [{"name": LONG, "gpu": 0.5}, {"name": LONG, "gpu": 0.5}]},
        {"gpu": 0.5, "template": {LONG: 1}},
        {"gpu": 0.5, "template": {"spec": {"containers": [{"name": "a"}], "restartPolicy": LONG}}},
        {"gpu": 0.5, "checkpoint": {"mountPath": LONG, "volume": {"name": LONG}}},
        {"gpu": 0.5, "sweep": {"parameters": {LONG: {"values": [1]}}, "trials": LONG}},
        {"roles": [{"name": LONG, "gpu": 0.5, "replicas": 1}] * 2},
    ],
    ids=lambda spec: "-".join(key[:9] for key in spec),
)
def test_what_is_wrong_with_a_job_is_told_in_few_words(spec: dict[str, Any]) -> None:
    spec = {"gpu": None} | spec
    assert quotes_little(gpujob_record(gpujob_body(**spec)).problem)


@pytest.mark.parametrize(
    "notes",
    [
        {names.ASKED: LONG},
        {names.ASKED: f"0:{LONG[:900]}={LONG[:900]}"},
        {names.ASKED: f"0:{names.ASK_GPU}={LONG[:900]}"},
        {names.ASKED: f"0:{names.ASK_GPU}=0.5", names.ASK_TYPE: LONG},
        {names.ASKED: f"0:{names.ASK_GPU}=0.5", names.ASK_PRIORITY: LONG},
        {names.ASKED: f"0:{names.ASK_GPU}=0.5", names.ASK_MODELS: LONG},
    ],
    ids=["asked", "key", "word", "type", "priority", "models"],
)
def test_what_is_wrong_with_a_pod_is_told_in_few_words(notes: dict[str, str]) -> None:
    share = share_of(make_pod(annotations_=notes))
    assert share is not None and quotes_little(share.problem)
