"""What a job took, and what is said where its use is not recorded."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner
from tests.unit.cli.node_objects import GPUJOBS, GPUNODES, NODES, PODS, gpunode, node, pod, report
from tests.unit.cli.objects_server import Objects
from tests.unit.cli.use_cluster import Call

from gpu_scheduler.cli.holders.taken import taken
from gpu_scheduler.cli.root import app

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
Body = dict[str, Any]


def at(minute: int) -> str:
    return f"2026-11-25T11:{minute:02d}:00Z"


def ran(name: str, placed: int, start: int, end: int | None = None, **more: Any) -> Body:
    """A pod with half a GPU, placed, started and ended at these minutes past 11."""
    found = pod(name, "n", ("0", 500), job="train", **more)
    state = {"running": {"startedAt": at(start)}}
    if end is not None:
        found["status"]["phase"] = more.get("phase", "Succeeded")
        state = {"terminated": {"startedAt": at(start), "finishedAt": at(end)}}
    placing = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(placed)}
    found["status"] |= {
        "conditions": [placing],
        "containerStatuses": [{"state": state, "restartCount": 1}],
    }
    found["metadata"]["creationTimestamp"] = at(0)
    return found


def job(**status: Any) -> Body:
    return {
        "metadata": {"name": "train", "namespace": "team-a", "creationTimestamp": at(0)},
        "spec": {"gpu": 0.5},
        "status": {"phase": "Running", **status},
    }


def test_waiting_running_and_gpu_hours() -> None:
    pods = [ran("a", 6, 12, 42), ran("b", 30, 30)]
    found = taken(job(evictions=2, lostGPUSeconds=1800), pods, NOW)
    assert (found.queued_seconds, found.waits) == (360, False)
    assert found.run_seconds == 48 * 60  # from 11:12 until now
    assert found.held_gpu_hours == pytest.approx(0.5 * (36 + 30) / 60)
    assert found.asked_gpu_hours == pytest.approx(0.5 * (30 + 30) / 60)
    assert (found.pods, found.failed, found.restarts) == (2, 0, 2)
    rows = dict(found.rows())
    assert rows["Queued"] == "6 min"
    assert (rows["Evictions"], rows["GPU-hours lost"]) == ("2", "0.50")


def test_a_job_that_waits_has_waited_until_now() -> None:
    found = taken(job(phase="Pending", reason="WaitingForQuota"), [], NOW)
    assert (found.queued_seconds, found.waits, found.run_seconds) == (3600, True, None)
    assert dict(found.rows())["Queued"] == "1 h, and waits still"
    assert found.state == "Pending, WaitingForQuota"


def test_a_job_whose_pods_are_gone_makes_no_numbers_up() -> None:
    found = taken(job(phase="Succeeded"), [], NOW)
    assert (found.queued_seconds, found.run_seconds, found.held_gpu_hours) == (None, None, None)
    assert not found.waits


def test_a_pod_without_a_job_counts_by_itself() -> None:
    found = taken(None, [ran("a", 6, 12, 42, labels={"gpu-scheduler.io/gpu": "0.25"})], NOW)
    assert found.asked_gpu_hours == pytest.approx(0.25 * 30 / 60)
    assert found.state == "Succeeded"


def test_utilisation_and_cap_are_those_of_the_placements() -> None:
    placements = [{"memoryMiB": 20000, "computePercent": 40}, {"memoryMiB": 20224}]
    found = taken(job(placements=placements), [], NOW)
    assert (found.percent, found.cap_mib) == (40, 20224)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None, "status": None},
        {"metadata": {"annotations": {"gpu-scheduler.io/allocation": "x"}}, "status": {}},
        {"status": {"containerStatuses": [None, {"state": None}], "conditions": []}},
        {"status": {"containerStatuses": [{"state": {"running": {"startedAt": "?"}}}]}},
    ],
)
def test_odd_objects_give_no_figures(odd: Body) -> None:
    found = taken(odd, [odd], NOW)
    assert (found.queued_seconds, found.run_seconds, found.held_gpu_hours) == (None, None, None)


@pytest.fixture
def objects() -> Objects:
    return Objects({NODES: [node("n")], GPUNODES: [], PODS: [], GPUJOBS: [job()]})


MISSING = "What work does with its GPUs is not recorded in this cluster: the chart value "


def test_a_report_says_what_is_not_recorded(call: Call, objects: Objects) -> None:
    objects.lists[PODS] = [ran("train-0-x", 6, 12, 42)]
    result = call("report", "train")
    assert result.exit_code == 0, result.output
    assert "GPU-hours held  0.30\n" in result.output
    assert f"\n{MISSING}agent.history.enabled turns it on.\n" in result.output
    found = json.loads(call("report", "train", "-o", "json").output)
    assert (found["name"], found["gpuHoursHeld"], found["gpuHoursUsed"]) == (
        "team-a/train",
        0.3,
        None,
    )
    assert found["notShown"].startswith(MISSING)


def test_advice_that_is_not_recorded_is_missed_in_one_line(call: Call) -> None:
    result = call("advise")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert MISSING in result.stderr


def test_usage_says_that_accounts_come_later() -> None:
    result = CliRunner().invoke(app, ["usage", "--by", "job"])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "come with a later version" in result.stderr
    assert "kubectl gpu report JOB" in result.stderr


def test_idle_is_what_is_held_and_at_0_now(call: Call, objects: Objects) -> None:
    busy, lazy = pod("b", "n", ("0", 500), job="busy"), pod("l", "n", ("1", 1000), job="lazy")
    objects.lists[PODS] = [busy, lazy, pod("u", "n", ("0", 100), job="unknown")]
    said = [report(busy, 60), report(lazy, 0)]
    objects.lists[GPUNODES] = [gpunode("n", "GPU-a", "GPU-b", containers=said)]
    result = call("idle")
    assert result.exit_code == 0, result.output
    rows = result.output.splitlines()
    assert rows[1].split() == ["team-a/lazy", "team-a", "1.00", "1", "n"]
    assert "busy" not in result.output
    assert "kubectl gpu suspend -n team-a lazy" in result.output
    assert "Of 1 more it is not known." in rows
    assert rows[-1].startswith("A mean of five minutes; since when is not known. What work does")
    found = json.loads(call("idle", "-o", "json").output)
    assert [each["name"] for each in found["idleNow"]] == ["lazy"]
    assert found["notKnown"] == ["team-a/unknown"]
    assert "Nothing that holds a GPU is at 0 %" in call("idle", "-p", "nobody").output


def test_idle_without_agents_is_not_known(call: Call, objects: Objects) -> None:
    objects.lists[PODS] = [pod("b", "n", ("0", 500))]
    result = call("idle")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "kubectl gpu top jobs" in result.stderr
    assert "Nor is it known of this moment: no agent has reported" in result.stderr


def test_idle_says_that_agents_which_report_have_not_measured_yet(
    call: Call, objects: Objects
) -> None:
    held = pod("b", "n", ("0", 500), job="new")
    objects.lists[PODS] = [held]
    objects.lists[GPUNODES] = [gpunode("n", "GPU-a", containers=[report(held, None)])]
    result = call("idle")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "the agents have not measured it yet (it takes a minute)" in result.stderr
    assert "no agent" not in result.stderr.lower()
