"""Addresses for reports name the pod, bear no secret, and are given to those that may report."""

from typing import Any

from tests.unit.state.builders import make_gpujob, make_pod
from tests.unit.state.test_cluster_state import make_cluster_state
from tests.unit.sweeps.runtime.pruned import STOPPING

from gpu_scheduler.api.names import CHECKPOINT_URL, REPORT_URL
from gpu_scheduler.core.model.decision import Assignment, DeviceAllocation
from gpu_scheduler.core.model.request import PodUID
from gpu_scheduler.runtime.reports.report_urls import ReportUrls

POD = PodUID("uid-job-0")
SAVING = {"checkpoint": {"volume": {"hostPath": {"path": "/a"}}}}
SWEEP = {
    "algorithm": "random",
    "objective": {"metric": "loss"},
    "parameters": {"lr": {"uniform": [0, 1]}},
}
PRUNED = {"completions": 8, "sweep": {**SWEEP, "earlyStopping": STOPPING}}


class Nothing:
    """Sets what it is told to."""

    def prepare(self, decision: Assignment, then: Any) -> bool:
        return True

    def annotations(self, decision: Assignment) -> dict[str, str]:
        return {"other": "kept"}


def urls(base: str, **spec: Any) -> dict[str, str]:
    state = make_cluster_state(make_pod())
    state.gpujob_changed(make_gpujob(**spec))
    decision = Assignment(make_gpujob().key, POD, "a", (DeviceAllocation(0, "0", 500, 1),))
    return dict(ReportUrls(state, Nothing(), base).annotations(decision))


def test_pods_that_may_report_are_given_addresses_that_name_them() -> None:
    saved = {CHECKPOINT_URL: "http://r/reports/checkpoints/uid-job-0"}
    trial = {REPORT_URL: "http://r/reports/trials/uid-job-0"}
    assert urls("http://r/reports/", **SAVING) == {"other": "kept"} | saved
    assert urls("http://r/reports", **PRUNED) == {"other": "kept"} | trial
    assert urls("http://r/reports", **PRUNED, **SAVING) == {"other": "kept"} | saved | trial


def test_the_same_pod_is_given_the_same_addresses_again() -> None:
    assert urls("http://r", **PRUNED) == urls("http://r", **PRUNED), "there is no secret in them"


def test_others_are_given_none_and_nobody_is_where_reports_are_off() -> None:
    assert urls("http://r/reports") == {"other": "kept"}
    assert urls("http://r/reports", completions=8, sweep=SWEEP) == {"other": "kept"}
    assert urls("", **SAVING, **PRUNED) == {"other": "kept"}
