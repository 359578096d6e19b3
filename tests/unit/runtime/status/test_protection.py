"""The conditions that agents' reports lead to."""

from typing import Any

from tests.unit.runtime.status.test_job_status import NOW, THEN, after, running, status_of
from tests.unit.state.builders import half, make_gpujob, make_job, make_pod

from gpu_scheduler.api.gpujob import GPUJobStatus
from gpu_scheduler.kube.objects import Pod
from gpu_scheduler.runtime.status.job_status import gpujob_status
from gpu_scheduler.runtime.status.job_statuses import turned_bad
from gpu_scheduler.runtime.status.protection import Watched
from gpu_scheduler.runtime.status.states import JobContext
from gpu_scheduler.state.jobs.job import GPUJobRecord, job_record
from gpu_scheduler.state.nodes.agents import SeenContainer
from gpu_scheduler.state.nodes.devices import NodeDevice
from gpu_scheduler.state.pods.pod import record

SINCE = "2026-01-01T00:00:00Z"
SICK = NodeDevice("GPU-0", 0, "A100", 40960, healthy=False, illness="XID 79, fallen off the bus")
OVER = SeenContainer(
    0, "interposer", SINCE, "container main holds 9000 MiB of GPU-0, its cap is 8000 MiB"
)
BARE = SeenContainer(
    1, "unprotected", message="container b: process 7 (python) runs without libgpucap"
)


def judged(
    pods: dict[str, tuple[SeenContainer, ...]],
    sick: tuple[NodeDevice, ...] = (),
    job: GPUJobRecord | None = None,
    now: str = NOW,
    **pod: Any,
) -> GPUJobStatus:
    """The status of a job whose running pods were reported so."""
    batch = job_record(make_job())
    assert batch is not None
    seen: list[Pod] = [
        make_pod(name, node="a", devices=half("GPU-0"), **({"phase": "Running"} | pod))
        for name in pods
    ]
    return gpujob_status(
        job or make_gpujob(),
        [batch],
        map(record, seen),
        project=None,
        now=now,
        known=JobContext(watched=Watched(lambda p: pods[p.name], lambda p: sick)),
    )


def shown(status: GPUJobStatus) -> dict[str, tuple[str, str, str]]:
    known = ("Accepted", "Placed")
    return {
        c.type: (c.status, c.reason, c.message) for c in status.conditions if c.type not in known
    }


def test_without_an_agent_there_is_neither_condition_nor_layer() -> None:
    status = status_of(pods=(running(),))
    assert shown(status) == {}
    assert status.placements[0].isolation is None


def test_a_job_is_protected_when_all_reports_say_so() -> None:
    status = judged(
        {"job-0": (SeenContainer(0, "kernel"), SeenContainer(1, "interposer")), "job-1": ()}
    )
    sentence = "a library in the container enforces the memory cap"
    assert shown(status) == {"Protected": ("True", "Interposer", sentence)}
    assert {p.pod: p.isolation for p in status.placements} == {"job-0": "interposer", "job-1": None}


def test_placements_say_how_much_time_a_pod_had() -> None:
    busy = (
        SeenContainer(0, "kernel", compute_percent=40),
        SeenContainer(1, "kernel", compute_percent=20),
    )
    status = judged({"job-0": busy, "job-1": (SeenContainer(0, "kernel"),)})
    assert {p.pod: p.compute_percent for p in status.placements} == {"job-0": 60, "job-1": None}
    ended = judged({"job-0": busy}, phase="Pending")
    assert [p.compute_percent for p in ended.placements] == [None]


def test_a_layer_that_only_asks_is_called_that() -> None:
    _, reason, message = shown(judged({"job-0": (SeenContainer(0, "framework"),)}))["Protected"]
    assert reason == "Framework" and message.startswith("nothing enforces the memory cap")


def test_a_container_without_its_layer_is_unprotected() -> None:
    status = judged({"job-0": (SeenContainer(0, "kernel"), BARE)})
    assert shown(status)["Protected"] == ("False", "Unprotected", f"job-0: {BARE.message}")
    assert status.placements[0].isolation == "unprotected"
    (none,) = shown(judged({"job-0": (SeenContainer(0, "none"),)})).values()
    assert none[:2] == ("False", "Unprotected") and "container 0" in none[2]


def test_an_excess_comes_first_with_its_numbers() -> None:
    status = judged({"job-0": (BARE,), "job-1": (OVER,)})
    assert shown(status)["Protected"] == (
        "False",
        "OverCap",
        f"job-1: {OVER.message}; job-0: {BARE.message}",
    )
    silent = SeenContainer(0, "kernel", SINCE)
    assert SINCE in shown(judged({"job-0": (silent,)}))["Protected"][2]


def test_of_many_the_first_three_are_named() -> None:
    message = shown(judged({f"job-{i}": (OVER,) for i in range(9)}))["Protected"][2]
    assert message.count("9000 MiB") == 3 and message.endswith(" and 6 more")


def test_a_job_on_a_sick_device_is_told_which_and_why() -> None:
    status = judged({"job-0": (), "job-1": ()}, sick=(SICK,))
    assert shown(status) == {
        "DevicesHealthy": (
            "False",
            "DeviceUnhealthy",
            "GPU-0 of a is unhealthy: XID 79, fallen off the bus (held by job-0, job-1)",
        )
    }


def test_a_device_that_is_well_again_is_told_once_it_was_ill() -> None:
    ill = judged({"job-0": ()}, sick=(SICK,), now=THEN)
    well = judged({"job-0": ()}, job=after(ill))
    assert shown(well) == {"DevicesHealthy": ("True", "Healthy", "")}
    assert judged({"job-0": ()}, job=after(well)) == well


def test_a_job_that_holds_nothing_any_more_has_neither() -> None:
    ill = judged({"job-0": (OVER,)}, sick=(SICK,))
    assert shown(judged({"job-0": (OVER,)}, (SICK,), after(ill), phase="Failed")) == {}


def test_equal_reports_give_an_equal_status_later_too() -> None:
    first = judged({"job-0": (OVER, BARE)}, sick=(SICK,), now=THEN)
    assert judged({"job-0": (OVER, BARE)}, (SICK,), after(first), now=NOW) == first


def test_events_tell_each_turn_for_the_worse_once() -> None:
    bare = judged({"job-0": (BARE,)})
    assert turned_bad({}, bare.to_json()) == [("Unprotected", f"job-0: {BARE.message}")]
    assert turned_bad(bare.to_json(), bare.to_json()) == []
    over = judged({"job-0": (OVER,)}, sick=(SICK,))
    reasons = [reason for reason, _ in turned_bad(bare.to_json(), over.to_json())]
    assert reasons == ["OverCap", "DeviceUnhealthy"]
    assert (
        turned_bad(over.to_json(), judged({"job-0": (SeenContainer(0, "kernel"),)}).to_json()) == []
    )
