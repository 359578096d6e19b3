"""How a pod is judged: stage, place, and what it may claim to hold."""

import pytest
from tests.unit.state.builders import CREATED, UNSCHEDULABLE, forged, half, make_pod

from gpu_scheduler.api.names import ALLOCATION, CONDITION_PRUNED, CONDITION_TIME_LIMIT
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.state.pods.pod import Stage, record

STAGES: dict[str, tuple[Pod, Stage, str]] = {
    "new, bind path": (make_pod(), Stage.WAITING, ""),
    "new, gate path": (make_pod(path="gate"), Stage.WAITING, ""),
    "of another scheduler": (make_pod(path="other"), Stage.BLOCKED, ""),
    "a gate of somebody else": (make_pod(gates=("example.com/wait",)), Stage.BLOCKED, ""),
    "our gate and another": (
        make_pod(path="gate", gates=("gpu-scheduler.io/placement", "example.com/wait")),
        Stage.BLOCKED,
        "",
    ),
    "waiting and being deleted": (make_pod(deleting=True), Stage.BLOCKED, ""),
    "bound": (make_pod(node="a", devices=half()), Stage.PLACED, "a"),
    "bound and being deleted": (
        make_pod(node="a", devices=half(), deleting=True),
        Stage.PLACED,
        "a",
    ),
    "released, not bound yet": (
        make_pod(path="other", devices=half(), allocated_node="a"),
        Stage.PLACED,
        "a",
    ),
    "running": (make_pod(node="a", devices=half(), phase="Running"), Stage.RUNNING, "a"),
    "running and being deleted": (
        make_pod(node="a", devices=half(), phase="Running", deleting=True),
        Stage.RUNNING,
        "a",
    ),
    "succeeded": (make_pod(node="a", devices=half(), phase="Succeeded"), Stage.ENDED, "a"),
    "failed": (make_pod(node="a", devices=half(), phase="Failed"), Stage.ENDED, "a"),
    "ended before it was placed": (make_pod(phase="Failed"), Stage.ENDED, ""),
}


@pytest.mark.parametrize("case", STAGES)
def test_stage_and_node(case: str) -> None:
    pod, stage, node = STAGES[case]
    found = record(pod)
    assert (found.stage, found.node) == (stage, node)


def test_the_allocation_of_a_placed_pod_is_read() -> None:
    found = record(make_pod(node="a", devices=half("1")))
    assert found.allocation is not None
    assert found.allocation.devices == half("1")


@pytest.mark.parametrize("path", ["bind", "gate"])
def test_a_forged_allocation_of_a_pod_that_was_never_placed_counts_as_nothing(path: str) -> None:
    found = record(make_pod(path=path, annotations_=forged()))
    assert (found.stage, found.node, found.allocation) == (Stage.WAITING, "", None)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"v":2,"n":"a","c":{}}', "\u0000"])
def test_an_allocation_that_cannot_be_read_counts_as_none(text: str) -> None:
    assert record(make_pod(node="a", annotations_={ALLOCATION: text})).allocation is None


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "9" * 5000])
def test_an_index_that_is_no_number_is_zero(text: str) -> None:
    key = "batch.kubernetes.io/job-completion-index"
    assert record(make_pod(annotations_={key: text})).index == 0


def test_the_controlling_job_is_found_by_its_reference() -> None:
    assert record(make_pod(job="the-job")).job_uid == "the-job"
    assert record(make_pod(job=None)).job_uid == ""


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize("kind", ["requests", "limits"])
@pytest.mark.parametrize("where", ["containers", "init_containers"])
def test_what_a_pod_asks_of_the_device_plugin_is_known(kind: str, where: str) -> None:
    asking = [{"resources": {kind: {GPU: "1", "nvidia.com/mig-1g.5gb": "2", "cpu": "1"}}}]
    pod = make_pod(path="other", node="a", **{where: asking})  # type: ignore[arg-type]
    assert record(pod).plugin == (GPU, "nvidia.com/mig-1g.5gb")


def test_asking_the_device_plugin_for_none_is_not_asking() -> None:
    nothing = [{"resources": {"requests": {GPU: "0"}, "limits": {GPU: "0"}}}]
    assert record(make_pod(path="other", node="a", containers=nothing)).plugin == ()


@pytest.mark.parametrize("kind", ["DisruptionTarget", CONDITION_TIME_LIMIT])
@pytest.mark.parametrize("status", ["True", "False"])
def test_a_mark_counts_when_it_is_true(kind: str, status: str) -> None:
    pod = make_pod(node="a", phase="Failed", conditions=({"type": kind, "status": status},))
    assert record(pod).disrupted == (status == "True")


@pytest.mark.parametrize("status", ["True", "False"])
def test_a_trial_that_was_told_to_stop_says_since_when(status: str) -> None:
    mark = {"type": CONDITION_PRUNED, "status": status, "lastTransitionTime": CREATED}
    pod = record(make_pod(node="a", phase="Running", conditions=(mark,)))
    assert pod.pruned == (CREATED if status == "True" else "")
    assert not pod.disrupted


def test_only_unschedulable_is_a_verdict_of_the_stock_scheduler() -> None:
    gated = {**UNSCHEDULABLE, "reason": "SchedulingGated"}
    assert record(make_pod(path="gate", conditions=(gated,))).unschedulable is None
    stuck = make_pod(path="other", devices=half(), allocated_node="a", conditions=(UNSCHEDULABLE,))
    assert record(stuck).unschedulable is not None


def test_what_was_said_of_a_pod_before_it_left_its_gate_is_no_verdict() -> None:
    """The condition stays until kube-scheduler has looked at the pod, which may take a while."""
    ours = {**UNSCHEDULABLE, "message": "WaitingForGPU: needs 0.5 of a GPU; none is free"}
    released = make_pod(path="other", devices=half(), allocated_node="a", conditions=(ours,))
    found = record(released)
    assert found.unschedulable is None
    assert found.unscheduled is not None, "it is known that something is said"
