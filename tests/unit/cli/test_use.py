"""GPUUsage as commands read it: leniently, once, and saying what it does not show."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.objects_server import Objects, serving
from tests.unit.cli.use_objects import GPUUSAGES, busy_job, idle_notebook, oversized_job, usage

from gpu_scheduler.cli.use import from_status
from gpu_scheduler.cli.use.amounts import cores_pair, duration, gib, gib_pair, sparkline
from gpu_scheduler.cli.use.read import NOT_RECORDED, UseView, read
from gpu_scheduler.cli.use.saving import saved_milli, saving, share_of
from gpu_scheduler.cli.use.workload import UsedWorkload, moment, percent, whole, workloads
from gpu_scheduler.cli.where import ClusterOptions


def used(**more: Any) -> UsedWorkload:
    said = {"namespace": "team-a", "kind": "GPUJob", "name": "train", "runs": True, "milli": 1000}
    return UsedWorkload(**said | more)


def test_what_the_model_writes_is_read() -> None:
    train, notebook, finetune = workloads(usage(busy_job(), idle_notebook(), oversized_job()))
    assert (train.kind, train.key, train.project, train.runs) == (
        "GPUJob",
        "team-a/train",
        "vision",
        True,
    )
    assert (train.milli, train.pods, train.gpu_seconds) == (1000, 1, 7500)
    assert (train.busy.now, train.busy.mean, train.busy.p50, train.busy.p95) == (88, 85, 90, 98)
    assert (train.memory.now, train.memory.peak, train.memory.cap) == (32000, 34816, 40000)
    assert (train.host.cpu_milli, train.host.ram_limit_mib) == (6400, 32768)
    assert train.curve is not None and train.curve.step_seconds == 130
    assert train.curve.busy_percent[:2] == (None, 20)
    assert notebook.host.cpu_limit_milli is None
    assert isinstance(notebook.idle_since, datetime) and train.idle_since is None
    assert [each.rule for each in finetune.advice] == ["OVERSIZED", "SMALL_BATCH"]
    assert finetune.advice[0].command.endswith("-g 0.4")


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"status": None},
        {"status": {"workloads": "x"}},
        {"status": {"workloads": [None, 3, {}, {"name": 3}]}},
    ],
)
def test_odd_objects_have_no_workloads(odd: dict[str, Any]) -> None:
    assert list(workloads(odd)) == []


def test_odd_fields_are_not_known() -> None:
    odd = {
        "name": "x",
        "gpus": "1",
        "pods": True,
        "busy": {"now": 101, "mean": -1, "p50": "3", "p95": None},
        "memoryMiB": [],
        "host": {"cpuMilli": float("inf")},
        "startedAt": "yesterday",
        "advice": [None, {"message": "no rule"}, {"rule": "R"}],
        "curve": {"stepSeconds": 0, "busyPercent": [1]},
        "type": None,
    }
    (found,) = workloads({"metadata": {"namespace": "n"}, "status": {"workloads": [odd]}})
    assert found.busy == used().busy and found.memory == used().memory and found.host == used().host
    assert (found.milli, found.pods, found.started_at, found.curve) == (0, 0, None, None)
    assert [each.rule for each in found.advice] == ["R"]
    assert (found.gpu_seconds, found.used_gpu_hours, found.efficiency_percent) == (None, None, None)


def test_times_have_a_zone() -> None:
    assert moment("2026-11-28T10:00:00Z") == datetime(2026, 11, 28, 10, tzinfo=UTC)
    assert moment("2026-11-28T10:00:00") == datetime(2026, 11, 28, 10, tzinfo=UTC)
    assert moment(None) is None
    assert (whole(2.6), whole(-1), whole(True), whole("2")) == (3, None, None, None)
    assert (percent(100), percent(101)) == (100, None)


def test_efficiency_is_what_was_used_of_what_was_held() -> None:
    assert used(gpu_seconds=7200).efficiency_percent is None
    half = next(workloads(usage(busy_job(gpu_seconds=7200, used_gpu_seconds=6120))))
    assert (half.held_gpu_hours, half.used_gpu_hours, half.efficiency_percent) == (2.0, 1.7, 85)
    exact = used(gpu_seconds=7200, used_gpu_seconds=1800)
    assert (exact.used_gpu_hours, exact.efficiency_percent) == (0.5, 25)


def test_of_equal_names_the_kind_counts_and_what_runs_goes_first() -> None:
    ended = used(runs=False, ended_at=moment("2026-11-28T10:00:00Z"))
    later = used(runs=False, ended_at=moment("2026-11-28T11:00:00Z"))
    server = used(kind="Deployment", runs=False)
    view = UseView.of([ended, later, server])
    assert view.find("team-a", "train") is later
    assert view.find("team-a", "train", "deployment") is server
    assert view.find("team-b", "train") is None
    assert UseView.of([later, used()]).find("team-a", "train", "gpujob") == used()


@pytest.mark.parametrize(
    ("command", "milli"),
    [
        ("kubectl gpu submit new --from old -g 0.4", 400),
        ("kubectl gpu submit new --from old --gpu=0.25", 250),
        ("kubectl gpu submit new --from old -- -g 0.4", None),
        ("kubectl gpu submit new -g", None),
        ("kubectl gpu submit new -g many", None),
        ("an open ' quote", None),
        ("", None),
    ],
)
def test_what_a_command_asks_for(command: str, milli: int | None) -> None:
    assert share_of(command) == milli


def test_what_advice_saves() -> None:
    finetune = next(workloads(usage(oversized_job())))
    assert [saved_milli(finetune, each) for each in finetune.advice] == [600, None]
    assert saving(finetune, finetune.advice[0]) == (
        "saves 0.60 of 1.00 GPUs; 1.80 GPU-hours would be saved by now"
    )
    ended = next(workloads(usage(oversized_job(state="Ended"))))
    assert saving(ended, ended.advice[0]) == "would have saved 0.60 of 1.00 GPUs, 1.80 GPU-hours"
    notebook = next(workloads(usage(idle_notebook())))
    assert saving(notebook, notebook.advice[0]).startswith("saves 0.50 of 0.50 GPUs; 2.25 GPU-")


def test_a_share_that_is_not_smaller_saves_nothing() -> None:
    two = next(workloads(usage(oversized_job(pods=4))))
    assert saving(two, two.advice[0]) == ""


def test_amounts() -> None:
    assert [gib(mib) for mib in (None, 512, 2048)] == ["-", "512 MiB", "2.0 GiB"]
    assert [gib_pair(*pair) for pair in ((None, None), (2048, None), (None, 2048))] == [
        "-",
        "2.0Gi/-",
        "-/2.0Gi",
    ]
    assert [cores_pair(*pair) for pair in ((None, None), (100, 8000))] == ["-", "0.1/8"]
    shown = [duration(seconds) for seconds in (None, 0, 59, 3612, 7800, 90000)]
    assert shown == ["-", "0 s", "59 s", "1 h", "2 h 10 min", "1 d 1 h"]


def test_a_sparkline_has_a_glyph_a_point_and_a_blank_where_nobody_knows() -> None:
    assert sparkline([None, 0, 50, 100, 200], 100, glyphs="012") == " 0122"
    assert sparkline([3], 0, glyphs="012") == "0"


STATUS = {
    "gpuSeconds": 3600,
    "usedGPUSeconds": 900,
    "meanPercent": 25,
    "p50Percent": 20,
    "p95Percent": 90,
    "peakMiB": 1024,
    "capMiB": 4096,
}


def test_the_sums_of_a_status_stay_after_the_end() -> None:
    job = {"metadata": {"name": "train", "namespace": "team-a"}, "status": {"usage": STATUS}}
    job["status"]["phase"] = "Succeeded"
    found = from_status.of_job(job)
    assert found is not None and not found.runs
    assert (found.used_gpu_hours, found.efficiency_percent, found.busy.p95) == (0.25, 25, 90)
    assert (found.memory.peak, found.memory.cap) == (1024, 4096)
    assert from_status.of_job({"status": {"usage": None}}) is None


def test_of_what_has_ended_the_status_goes_before_the_record() -> None:
    recorded = next(workloads(usage(busy_job(state="Ended"))))
    status = used(runs=False, gpu_seconds=3600, used_gpu_seconds=900)
    both = from_status.together(recorded, status)
    assert both is not None and (both.gpu_seconds, both.used_gpu_seconds) == (3600, 900)
    assert (both.busy.mean, both.curve) == (85, recorded.curve)
    running = next(workloads(usage(busy_job())))
    assert from_status.together(running, status) is running
    assert from_status.together(None, status) is status


def look(objects: Objects, folder: Path, namespace: str = "") -> UseView:
    with serving(objects, folder) as kubeconfig:
        options = ClusterOptions(kubeconfig=kubeconfig)
        with options.cluster() as cluster:
            return read(cluster, namespace)


def test_all_namespaces_are_read_where_that_is_allowed(tmp_path: Path) -> None:
    bodies = [usage(busy_job()), usage(idle_notebook(), namespace="team-b", omitted=2)]
    objects = Objects({GPUUSAGES: bodies})
    view = look(objects, tmp_path)
    assert {each.key for each in view.workloads()} == {"team-a/train", "team-b/notebook"}
    assert list(view.notes()) == ["2 workloads are left out of GPUUsage for its size."]
    view = look(objects, tmp_path, "team-b")
    assert [each.key for each in view.workloads()] == ["team-b/notebook"]
    objects.forbidden.add(GPUUSAGES)
    view = look(objects, tmp_path)
    assert [each.key for each in view.workloads()] == ["team-a/train"]
    assert list(view.notes()) == [
        "Use of other namespaces than team-a is not shown: you may not list their "
        "gpuusages.gpu-scheduler.io."
    ]
    assert list(view.notes(scope_is_said=True)) == []


def test_what_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    assert look(Objects({}), tmp_path).missing == NOT_RECORDED
    assert look(Objects({GPUUSAGES: []}), tmp_path, "team-a").missing == (
        "Nothing is recorded of namespace team-a: no work has held a GPU there in the last seven "
        "days, or it is turned off; the chart value agent.history.enabled turns it on."
    )
    mine = "/apis/gpu-scheduler.io/v1alpha1/namespaces/team-a/gpuusages"
    view = look(Objects({GPUUSAGES: []}, forbidden={GPUUSAGES, mine}), tmp_path)
    assert view.missing == (
        "You may not read gpuusages.gpu-scheduler.io in namespace team-a: who may view it may, "
        "where the chart has rbac.aggregate."
    )
