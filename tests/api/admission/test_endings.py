"""Why a pod of ours failed stands in the write that says that it failed (ADR 0073).

The kubelet is played by an administrator; a real one writes in ``tests/e2e/test_recovery.py``.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.account import HAS_MUTATING_POLICIES
from tests.api.admission.objects import PROJECT, binding, created, pod, wait_until
from tests.api.caller import Caller

from gpu_scheduler.api.names import CONDITION_DISRUPTION, CONDITION_TIME_LIMIT, SAID_BY_POLICY

pytestmark = pytest.mark.skipif(not HAS_MUTATING_POLICIES, reason="Kubernetes before 1.36")

REJECTED = {"phase": "Failed", "reason": "OutOfcpu", "message": "Pod was rejected: no CPU"}
LATE = {"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"}
RAN = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
STATES = {
    "failed": {"terminated": {"exitCode": 1}},
    "killed": {"terminated": {"exitCode": 137}},
}


def ran(state: str) -> dict[str, Any]:
    return {"containerStatuses": [RAN | {"state": STATES[state]}]}


def said(admin: Caller, where: str, status: dict[str, Any], query: str = "") -> list[Any]:
    """The conditions of a pod after its kubelet has written this status."""
    answer = admin.patch(f"{where}/status{query}", {"status": status})
    assert answer.ok, answer.message
    found = answer.body["status"].get("conditions", ())
    return [(c["type"], c["reason"]) for c in found if c["type"] != "PodScheduled"]


@pytest.fixture
def placed(admin: Caller, operator: Caller, editor: Caller, term: str) -> Iterator[str]:
    """A pod with a place of ours, once the policy is in force."""
    where = created(editor, pod(PROJECT, schedulerName="gpu-scheduler"))
    name = where.rpartition("/")[2]
    answer = operator.create(f"{where}/binding", binding(name, term))
    assert answer.ok, answer.message
    wait_until(lambda: said(admin, where, REJECTED, "?dryRun=All") != [])
    yield where
    admin.send("DELETE", f"{where}?gracePeriodSeconds=0")


@pytest.mark.parametrize(
    ("status", "conditions"),
    [
        (REJECTED, [(CONDITION_DISRUPTION, SAID_BY_POLICY)]),
        (REJECTED | {"reason": "NodeAffinity"}, [(CONDITION_DISRUPTION, SAID_BY_POLICY)]),
        (LATE | ran("killed"), [(CONDITION_TIME_LIMIT, SAID_BY_POLICY)]),
        (LATE, [(CONDITION_TIME_LIMIT, SAID_BY_POLICY)]),  # its image was never pulled
        ({"phase": "Failed"} | ran("failed"), []),
        ({"phase": "Succeeded"}, []),
        ({"phase": "Running"}, []),
    ],
    ids=["rejected", "rejected-again", "late", "late-before-it-ran", "failed", "done", "runs"],
)
def test_why_a_pod_failed_is_said_at_once(
    admin: Caller, placed: str, status: dict[str, Any], conditions: list[Any]
) -> None:
    assert said(admin, placed, status) == conditions


def test_what_others_said_stays(admin: Caller, placed: str) -> None:
    theirs = {"type": CONDITION_DISRUPTION, "status": "True", "reason": "TerminationByKubelet"}
    status = REJECTED | {"conditions": [theirs]}
    assert said(admin, placed, status) == [(CONDITION_DISRUPTION, "TerminationByKubelet")]


def test_pods_without_a_place_of_ours_are_let_be(
    admin: Caller, placed: str, editor: Caller
) -> None:
    where = created(editor, pod(PROJECT))
    assert said(admin, where, REJECTED) == []
    admin.send("DELETE", f"{where}?gracePeriodSeconds=0")
