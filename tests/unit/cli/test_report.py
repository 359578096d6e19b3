"""``kubectl gpu report``: running, ended and deleted work on one screen, and two side by side."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.node_objects import GPUJOBS, PODS
from tests.unit.cli.objects_server import Objects
from tests.unit.cli.use_cluster import Call, only_one_namespace
from tests.unit.cli.use_objects import GPUUSAGES, ago, busy_job, job, oversized_job, usage

from gpu_scheduler.api.gpuusage import SlowestRank
from gpu_scheduler.api.job_usage import RoleUsage

STATEFULSETS = "/apis/apps/v1/statefulsets"

BUSY = "▇" * 50
MEMORY = "▆" * 50
TRAIN = f"""\
Name            gpujob team-a/train
State           Running
Asked           1 GPU
Held            1.00 GPUs by 1 pod
Queued          4 min
Run             2 h 5 min
GPU-hours held  2.08
GPU-hours used  1.77
Efficiency      85 % = GPU-hours used ÷ held; used is time with kernels, at most the share
Busy            now 88 %, mean 85 %, p50 90 %, p95 98 %
Peak memory     34.0 GiB of 39.1 GiB (87 %)
CPU cores       6.4 of 8, asked 4
RAM             24.0 GiB of 32.0 GiB, asked 16.0 GiB
Idle            no
Pods            1 there, 0 failed, 0 restarts
Evictions       0, 0.00 GPU-hours lost
Busy curve      | ▂{BUSY}▃▅▇▇▇▇| 0 to 100 %
Memory curve    | ▂{MEMORY}▇▇▇▇▇▇| 0 to 39.1 GiB
Each point      2 min 10 s; a blank is not known
No advice.
"""


def test_a_job_that_runs(call: Call) -> None:
    assert call("report", "train").output == TRAIN


def test_a_tenant_who_may_view_one_namespace_sees_the_same(call: Call, objects: Objects) -> None:
    only_one_namespace(objects)
    assert call("report", "train").output == TRAIN


def test_advice_comes_with_its_command_and_what_it_saves(call: Call) -> None:
    assert call("report", "finetune").output.splitlines()[-4:] == [
        "Advice: OVERSIZED: it used at most 36 % of a GPU and 13.0 GiB; a share of 0.4 is enough",
        "  kubectl gpu submit finetune-2 --from finetune -n team-a -g 0.4",
        "  saves 0.60 of 1.00 GPUs; 1.80 GPU-hours would be saved by now",
        "Also: SMALL_BATCH: memory is left for a larger batch",
    ]


def test_it_is_one_screen_however_much_advice_there_is(call: Call, objects: Objects) -> None:
    much = oversized_job().advice[:1] * 8
    objects.lists[GPUUSAGES] = [usage(oversized_job(advice=much))]
    lines = call("report", "finetune").output.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 100
    assert lines[-1].endswith("OVERSIZED (kubectl gpu advise)")


def test_another_workload_by_kind_and_name(call: Call) -> None:
    lines = call("report", "sts/notebook").output.splitlines()
    assert lines[0] == "Name            statefulset team-a/notebook"
    assert "Asked           0.5 GPUs" in lines
    assert "Idle            for 4 h 30 min" in lines
    assert "RAM             3.0 GiB of 16.0 GiB, asked -" in lines


def test_a_pod_has_the_use_of_its_workload(call: Call) -> None:
    lines = call("report", "train-0-x").output.splitlines()
    assert lines[0] == (
        "Name            pod team-a/train-0-x of gpujob train, of which all figures of use are"
    )
    assert "GPU-hours used  1.77" in lines


def test_a_job_that_is_deleted_is_found_in_the_record(call: Call, objects: Objects) -> None:
    objects.lists[GPUJOBS], objects.lists[PODS] = [], []
    gone = busy_job(name="old", state="Ended", started_at=ago(hours=3), ended_at=ago(hours=1))
    objects.lists[GPUUSAGES] = [usage(gone)]
    for word in ("old", "gj/old"):
        lines = call("report", word).output.splitlines()
        assert lines[:9] == [
            "Name            gpujob team-a/old",
            "State           Ended, and deleted since",
            "Asked           -",
            "Held            at most 1.00 GPUs by 1 pod",
            "Run             2 h",
            "GPU-hours held  2.08",
            "GPU-hours used  1.77",
            TRAIN.splitlines()[8],
            "Busy            mean 85 %, p50 90 %, p95 98 %",
        ]
    assert json.loads(call("report", "old", "-o", "json").output)["use"]["state"] == "Ended"
    result = call("report", "deploy/old")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_a_job_that_ended_keeps_its_sums_in_its_status(call: Call, objects: Objects) -> None:
    ended = job("train", "Succeeded")
    sums = {"gpuSeconds": 7200, "usedGPUSeconds": 3600, "idleGPUSeconds": 1800, "p95Percent": 70}
    ended["status"]["usage"] = sums
    objects.lists[GPUJOBS], objects.lists[PODS], objects.lists[GPUUSAGES] = [ended], [], []
    lines = call("report", "train").output.splitlines()
    assert "GPU-hours held  2.00" in lines and "GPU-hours used  1.00" in lines
    assert TRAIN.splitlines()[8].replace("85", "50") in lines
    assert "Busy            mean -, p50 -, p95 70 %" in lines
    assert "Idle            0.50 GPU-hours in all" in lines
    assert not any(line.startswith("Held ") for line in lines)
    sums["idleGPUSeconds"] = 0
    assert "Idle            no" in call("report", "train").output.splitlines()


def test_each_role_has_a_line_and_the_least_busy_is_named(call: Call, objects: Objects) -> None:
    roles = [
        RoleUsage(name="actor", gpu_seconds=3600, used_gpu_seconds=360, mean_percent=10),
        RoleUsage(name="learner", gpu_seconds=7200, mean_percent=90, peak_mib=2048),
    ]
    objects.lists[GPUUSAGES] = [usage(busy_job(roles=roles))]
    lines = call("report", "train").output.splitlines()
    assert "Role actor      mean 10 %, 1.00 GPU-hours, peak -, the least busy" in lines
    assert "Role learner    mean 90 %, 2.00 GPU-hours, peak 2.0 GiB" in lines
    ended = job("train", "Succeeded")
    ended["status"]["usage"] = {"gpuSeconds": 9, "roles": [roles[1].to_json()]}
    objects.lists[GPUJOBS], objects.lists[PODS], objects.lists[GPUUSAGES] = [ended], [], []
    assert lines[lines.index("Idle            no") - 4] in call("report", "train").output
    told = json.loads(call("report", "train", "-o", "json").output)["use"]["roles"]
    assert [(each["name"], each["meanPercent"]) for each in told] == [("learner", 90)]


def test_of_a_gang_the_slowest_rank_is_named(call: Call, objects: Objects) -> None:
    slowest = SlowestRank(pod="train-3", mean_percent=41, median_percent=92, ranks=8)
    objects.lists[GPUUSAGES] = [usage(busy_job(slowest_rank=slowest))]
    lines = call("report", "train").output.splitlines()
    assert "Slowest rank    train-3, mean 41 %, median of 8 ranks 92 %" in lines
    told = json.loads(call("report", "train", "-o", "json").output)["use"]["slowestRank"]
    assert told == {"pod": "train-3", "mean": 41, "median": 92, "ranks": 8}


def test_the_queue_time_of_one_whose_pods_are_gone_is_that_to_its_first_gpu(
    call: Call, objects: Objects
) -> None:
    objects.lists[GPUJOBS], objects.lists[PODS] = [job("train", "Succeeded")], []
    ended = busy_job(state="Ended", started_at=ago(hours=2), ended_at=ago(hours=1))
    objects.lists[GPUUSAGES] = [usage(ended)]
    lines = call("report", "train").output.splitlines()
    assert lines[4:6] == ["Queued          1 h 4 min", "Run             1 h"]


def test_what_is_nowhere_is_said_in_one_line(call: Call, objects: Objects) -> None:
    result = call("report", "nothing")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    objects.lists[GPUUSAGES] = []
    assert "Nothing is recorded of namespace team-a" in call("report", "nothing").stderr


def test_two_runs_side_by_side(call: Call) -> None:
    lines = call("report", "train", "finetune").output.splitlines()
    assert max(map(len, lines)) <= 100
    rows = [[cell.strip() for cell in line.split("   ") if cell.strip()] for line in lines[:-1]]
    assert rows[0] == ["team-a/train", "team-a/finetune"]
    assert ["Efficiency", "85 %", "30 %"] in rows
    assert ["Peak memory", "34.0 GiB of 39.1 GiB (87 %)", "13.0 GiB of 39.1 GiB (33 %)"] in rows
    assert rows[-1] == ["Advice", "-", "OVERSIZED"]
    found = json.loads(call("report", "train", "finetune", "-o", "json").output)
    assert [each["gpuHoursUsed"] for each in found["runs"]] == [1.7708, 0.9]


def test_json_has_every_figure(call: Call) -> None:
    found: dict[str, Any] = json.loads(call("report", "train", "-o", "json").output)
    figures = {
        "gpuHoursHeld": 2.0833,
        "gpuHoursUsed": 1.7708,
        "efficiencyPercent": 85,
        "askedCPUMilli": 4000,
        "askedRAMMiB": 16384,
        "peakMemoryMiB": 34816,
        "memoryCapMiB": 40000,
        "utilizationPercentMean": 85,
        "utilizationPercentP50": 90,
        "utilizationPercentP95": 98,
        "notShown": None,
    }
    assert {key: found[key] for key in figures} == figures
    assert found["use"]["curve"]["stepSeconds"] == 130
    assert found["use"]["curve"]["busyPercent"][0] is None


@pytest.mark.long
def test_a_picture_of_one_or_two(call: Call, tmp_path: Path) -> None:
    for words, name in ((["train"], "one.svg"), (["train", "finetune"], "two.png")):
        path = tmp_path / name
        assert call("report", *words, "--plot", str(path)).output == f"{path}\n"
        assert path.stat().st_size > 1000
    assert "<svg" in (tmp_path / "one.svg").read_text()


def test_a_picture_that_cannot_be_made_is_refused(call: Call, objects: Objects) -> None:
    assert call("report", "train", "--plot", "train.txt").exit_code == 2
    result = call("report", "sts/notebook", "--plot", "x.svg")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "no curve of team-a/notebook is recorded" in result.stderr
