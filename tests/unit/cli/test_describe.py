"""``kubectl gpu describe``: one screen, whoever wrote the object."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.unit.cli.objects import Json, asks, holds, job, pod, waits
from tests.unit.cli.server import serving

from gpu_scheduler.cli.described import folded, lines
from gpu_scheduler.cli.finding import ResolvedTarget

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)


def screen(found: ResolvedTarget, *events: Json) -> str:
    return "\n".join(lines(found, list(events), NOW))


def of_job(body: Json, *pods: Json) -> ResolvedTarget:
    return ResolvedTarget("gpujob", "team-a", "x", body, list(pods))


def test_a_job_with_its_pods_their_devices_and_caps() -> None:
    body = job("x", "Running", "WaitingForGPU", parallelism=2, args=["--lr", "0 1"])
    body["status"] |= {
        "message": "nothing that fits is free",
        "gpu": "0.5/1",
        "project": "vision",
        "queuePosition": 3,
        "pods": {"running": 1, "pending": 1},
        "conditions": [
            {"type": "Placed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Protected", "status": "False", "reason": "OverCap", "message": "too much"},
        ],
    }
    text = screen(
        of_job(
            body,
            pod("x-0", index=0, nodeName="n1", annotations=holds("n1", **{"GPU-a": [500, 8192]})),
        ),
    )
    for part in (
        "Project:       vision",
        "Status:        Running: WaitingForGPU",
        "nothing that fits is free",
        "Runs:          --lr '0 1'",
        "Queue:         number 3 of its project",
        "Pods:          1 running, 1 pending, 0 succeeded, 0 failed",
        "  x-0\n    Running, index 0, on n1, 10m old\n    GPU-a: 0.5 of it, at most 8Gi",
        "  Placed=True (10m)",
        "  Protected=False OverCap (<unknown>)\n    too much",
    ):
        assert part in text, text


def test_events_are_shown_the_newest_last() -> None:
    def event(reason: str, moment: str, count: int = 1) -> Json:
        return {
            "reason": reason,
            "type": "Warning",
            "message": f"because of {reason}",
            "lastTimestamp": moment,
            "count": count,
            "involvedObject": {"kind": "GPUJob", "name": "x", "uid": "uid-x"},
        }

    many = [event(f"R{n}", "2026-01-01T00:09:00Z") for n in range(20)]
    text = screen(of_job(job("x")), *many, event("Last", "2026-01-01T00:09:30Z", 4))
    assert "Events (the last 15):" in text and "R5 " not in text
    assert text.endswith("  30s ago Warning Last gpujob/x, 4 times\n    because of Last")


def test_a_pod_that_asks_by_itself_says_why_it_waits() -> None:
    one = pod(
        "n",
        "Pending",
        annotations=asks("0:gpu-scheduler.io/gpu=0.5"),
        conditions=[waits("Unschedulable", "no GPU is free")],
    )
    text = screen(ResolvedTarget("pod", "team-a", "n", None, [one]))
    assert "Status:        Pending: Unschedulable" in text
    assert "no GPU is free" in text and "Held/asked:    0/0.5" in text


def test_pods_of_a_workload_stand_under_its_name() -> None:
    pods = [
        pod("a", owner=("StatefulSet", "web")),
        pod("b", "Pending", owner=("StatefulSet", "web")),
    ]
    text = screen(ResolvedTarget("statefulset", "team-a", "web", None, pods))
    assert text.startswith("Name:          statefulset/web") and "Pods (2):" in text


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"name": "x"}},
        {"metadata": {"name": "x"}, "spec": None, "status": None},
        job("x", "Later") | {"status": {"phase": "Later", "conditions": [None, {}], "new": 1}},
        job("x", template={"spec": {"containers": ["odd", {"image": "i"}]}}),
        job("x", roles=[{"name": "w"}, {}], sweep={"algorithm": "grid"}, checkpoint={"volume": {}}),
    ],
)
def test_odd_objects_break_nothing(body: Json) -> None:
    assert "Name:          x" in screen(
        of_job(body, {"metadata": {"name": "p"}}), {}, {"metadata": None}
    )


def call(tmp_path: Path, answers: dict[str, Any], *arguments: str) -> Result:
    with serving(answers) as server:
        return server.caller(tmp_path, "describe")(*arguments)


def test_only_events_about_it_are_shown_and_none_where_they_may_not_be_seen(tmp_path: Path) -> None:
    path = "GET /apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpujobs/x"
    events = {
        "items": [
            {"reason": "Mine", "involvedObject": {"uid": "uid-x", "name": "x"}},
            {"reason": "Pods", "involvedObject": {"uid": "uid-x-0", "name": "x-0"}},
            {"reason": "Former", "involvedObject": {"uid": "uid-former", "name": "x"}},
        ]
    }
    core = "GET /api/v1/namespaces/team-a"
    answers = {path: job("x"), f"{core}/pods": {"items": [pod("x-0")]}, f"{core}/events": events}
    text = call(tmp_path, answers, "x").stdout
    assert "Mine" in text and "Pods pod" not in text and "Former" not in text and " Pods " in text
    result = call(tmp_path, answers | {f"{core}/events": 403}, "x")
    assert (result.exit_code, "Events" in result.stdout) == (0, False)
    assert '"kind": "GPUJob"' in call(tmp_path, answers, "x", "-o", "json").stdout


def test_what_is_not_there(tmp_path: Path) -> None:
    result = call(tmp_path, {}, "nope")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert call(tmp_path, {}, "").exit_code == 2


def test_on_a_terminal_a_long_line_goes_on_below_its_beginning() -> None:
    line = f"{'Status:':14} WaitingForGPU: nothing that fits is free anywhere"
    found = list(folded(line, 40))
    assert found == [
        "Status:        WaitingForGPU: nothing",
        f"{'':15}that fits is free",
        f"{'':15}anywhere",
    ]
    assert list(folded("    a message of an Event that is long", 30)) == [
        "    a message of an Event that",
        "    is long",
    ]
    assert list(folded("", 80)) == [""]
