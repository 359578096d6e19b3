"""``kubectl gpu top jobs``, ``advise`` and ``idle`` on three jobs: busy, idle, with too much."""

import json

import pytest
from tests.unit.cli.objects_server import Objects
from tests.unit.cli.use_cluster import Call, only_one_namespace
from tests.unit.cli.use_objects import (
    GPUUSAGES,
    busy_job,
    idle_notebook,
    oversized_job,
    usage,
)

JOBS = """\
NAMESPACE/NAME    PROJECT   GPU    BUSY(now/mean)   MEMORY(now/cap)   CPU(used/limit)   \
RAM(used/limit)   IDLE    ADVICE
team-a/finetune   vision    1.00   33/30 %          11.7/39.1Gi       2/4               \
8.0/16.0Gi        -       OVERSIZED
team-a/train      vision    1.00   88/85 %          31.2/39.1Gi       6.4/8             \
24.0/32.0Gi       -       -
team-a/notebook   vision    0.50   0/4 %            2.0/19.5Gi        0.1/-             \
3.0/16.0Gi        4h30m   GPU_IDLE
"""
LEGEND_OF_TENANT = (
    "█ used  ▒ held, not used  ▓ held, use not known  ? free or of others, not shown\n"
)
LEGEND = "█ used  ▒ held, not used  ▓ held, use not known  ░ free\n"
SUM = "2.5 of 4 GPUs are allocated, 1.21 are busy. One whole GPU is free.\n"
BLIND = (
    "2.50 GPUs held: namespace team-a alone is shown, as you may read neither "
    "gpunodes.gpu-scheduler.io nor nodes: an administrator lets you with rbac.inventoryReaders of "
    "the chart.\n"
)
ADVICE = """\
GPUJob team-a/finetune: holds 1.00 GPUs, busy 30 % of the time
  OVERSIZED: it used at most 36 % of a GPU and 13.0 GiB; a share of 0.4 is enough
    kubectl gpu submit finetune-2 --from finetune -n team-a -g 0.4
    saves 0.60 of 1.00 GPUs; 1.80 GPU-hours would be saved by now
  SMALL_BATCH: memory is left for a larger batch

StatefulSet team-a/notebook: holds 0.50 GPUs, busy 4 % of the time
  GPU_IDLE: no kernel of it has run for 4 h 30 min; give its half of a GPU back
    kubectl scale -n team-a statefulset/notebook --replicas=0
    saves 0.50 of 0.50 GPUs; 2.25 GPU-hours would be saved by now
"""
IDLE = """\
NAMESPACE/NAME    PROJECT   TYPE          GPU    IDLE         GPU-HOURS   GIVES THEM BACK
team-a/notebook   vision    interactive   0.50   4 h 30 min   2.25        \
kubectl scale -n team-a statefulset/notebook --replicas=0
0.50 GPUs are held and idle, for 2.25 GPU-hours until now.
"""


def test_who_holds_most_with_what_it_uses(call: Call) -> None:
    assert call("top", "jobs").output == JOBS + SUM


def test_bars_show_what_is_used_within_what_is_held(call: Call) -> None:
    assert call("top", "gpus").output == (
        "a/0 A100  ▒▒▒▒▒░░░░░ 0.50  notebook 0.50  util 0 %\n"
        "a/1 A100  █████████▒ 1.00  train 1.00  util 88 %\n"
        "b/0 A100  ███▒▒▒▒▒▒▒ 1.00  finetune 1.00  util 33 %\n"
        f"b/1 A100  ░░░░░░░░░░ 0.00\n{LEGEND}{SUM}"
    )
    assert call("top", "nodes").output == (
        "a  ▒▒█████▒░░ 1.50 of 2  A100  0 entirely free  util 44 %\n"
        f"b  ██▒▒▒░░░░░ 1.00 of 2  A100  1 entirely free  util 16 %\n{LEGEND}{SUM}"
    )
    assert call("top", "projects").output == (
        f"vision  █████▒▒▒▒▒ 2.50 of 2.00  1.21 used  0.50 borrowed\n{LEGEND}{SUM}"
    )


def test_a_tenant_sees_one_namespace_and_is_told_so(call: Call, objects: Objects) -> None:
    only_one_namespace(objects)
    assert call("top", "jobs").output == JOBS + BLIND
    assert call("top", "gpus").output == (
        "a/GPU-bbbb  █████████▒ 1.00  train 1.00  util 88 %\n"
        "b/GPU-aaaa  ███▒▒▒▒▒▒▒ 1.00  finetune 1.00  util 33 %\n"
        f"a/0         ▒▒▒▒▒????? 0.50  notebook 0.50  util 0 %\n{LEGEND_OF_TENANT}{BLIND}"
    )
    assert call("top", "nodes").output == (
        f"a  ████▒▒▒▒?? 1.50 of ?\nb  ███▒▒▒▒▒▒▒ 1.00 of ?\n{LEGEND_OF_TENANT}{BLIND}"
    )
    hidden = (
        "Use of other namespaces than team-a is not shown: you may not list their "
        "gpuusages.gpu-scheduler.io.\n"
    )
    assert call("idle").output == IDLE + hidden
    assert call("advise", "-A").output == ADVICE + hidden
    assert call("advise").output == ADVICE


def test_where_only_the_record_shows_other_namespaces_they_are_there(
    call: Call, objects: Objects
) -> None:
    objects.lists[GPUUSAGES].append(usage(busy_job(name="far", gpus=4), namespace="team-b"))
    objects.forbidden.add("/api/v1/pods")
    first = call("top", "jobs").output.splitlines()[1].split()
    assert first[:5] == ["team-b/far", "vision", "4.00", "88/85", "%"]
    assert first[5] == "31.2Gi/-"  # of four GPUs; the cap is that of one


def test_json_has_the_use_of_each(call: Call) -> None:
    found = json.loads(call("top", "jobs", "-o", "json").output)
    assert [(each["name"], each["milliGPU"]) for each in found["jobs"]] == [
        ("finetune", 1000),
        ("train", 1000),
        ("notebook", 500),
    ]
    use = found["jobs"][0]["use"]
    assert use["busyPercent"] == {"now": 33, "mean": 30, "p50": 32, "p95": 36}
    assert use["advice"][0]["savesMilliGPU"] == 600
    assert found["notShown"] == []
    projects = json.loads(call("top", "projects", "-o", "json").output)
    assert projects["used"]["vision"] == {
        "usedMilliGPU": 1210,
        "unusedMilliGPU": 1290,
        "unknownMilliGPU": 0,
    }


def test_a_look_without_a_record_says_so_once(call: Call, objects: Objects) -> None:
    del objects.lists[GPUUSAGES]
    lines = call("top", "jobs").output.splitlines()
    assert lines[1].split() == ["team-a/finetune", "vision", "1.00", *"-", "-/39.1Gi", *"----"]
    assert lines[-1].startswith("What work does with its GPUs is not recorded in this cluster")
    assert "not recorded" not in call("top", "gpus").output


def test_advice_of_a_namespace_and_of_one(call: Call) -> None:
    assert call("advise").output == ADVICE
    assert call("advise", "finetune").output == ADVICE.partition("\n\n")[0] + "\n"
    assert call("advise", "sts/notebook").output == ADVICE.partition("\n\n")[2]


def test_no_advice_is_one_sentence_and_no_error(call: Call, objects: Objects) -> None:
    result = call("advise", "train")
    assert (result.exit_code, result.output) == (
        0,
        "No advice: nothing to change was seen in the one that was looked at.\n",
    )
    objects.lists[GPUUSAGES] = [usage(busy_job(), busy_job(name="b"))]
    assert "in the 2 that were looked at" in call("advise").output
    objects.lists[GPUUSAGES] = []
    result = call("advise")
    assert (result.exit_code, result.output.count("\n")) == (0, 1)
    assert result.output.startswith("Nothing is recorded of namespace team-a")


def test_advice_of_one_that_ended_is_kept(call: Call, objects: Objects) -> None:
    objects.lists[GPUUSAGES] = [usage(oversized_job(state="Ended"))]
    assert call("advise").output.startswith("No advice: nothing to change was seen in the 0")
    lines = call("advise", "finetune").output.splitlines()
    assert lines[0] == "GPUJob team-a/finetune: held 1.00 GPUs, busy 30 % of the time"
    assert lines[3] == "    would have saved 0.60 of 1.00 GPUs, 1.80 GPU-hours"


def test_advice_as_json(call: Call) -> None:
    found = json.loads(call("advise", "-o", "json").output)
    assert [each["name"] for each in found["advised"]] == ["finetune", "notebook"]
    first = found["advised"][0]["advice"][0]
    assert (first["rule"], first["savesMilliGPU"]) == ("OVERSIZED", 600)
    assert first["command"].endswith("-g 0.4")
    assert json.loads(call("advise", "train", "-o", "json").output)["advised"] == []


def test_what_cannot_be_advised_on_is_one_line(call: Call) -> None:
    result = call("advise", "nothing")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert call("advise", "train", "-A").exit_code == 2


def test_what_is_idle_since_when_and_what_gives_it_back(call: Call) -> None:
    assert call("idle").output == IDLE
    assert call("idle", "-A").output == IDLE
    assert call("idle", "-p", "vision", "-n", "team-a").output == IDLE
    assert call("idle", "-p", "other").output == "Nothing that holds a GPU is idle (0 known).\n"
    assert call("idle", "-A", "-n", "team-a").exit_code == 2


def test_idle_as_json_and_what_is_not_known(call: Call, objects: Objects) -> None:
    unknown = busy_job(name="mig", busy={})
    objects.lists[GPUUSAGES] = [usage(idle_notebook(), busy_job(), unknown)]
    assert call("idle").output.endswith("Of 1 more it is not known.\n")
    found = json.loads(call("idle", "-o", "json").output)
    (one,) = found["idleNow"]
    assert (one["name"], one["milliGPU"], one["gpuHoursWasted"]) == (
        "notebook",
        500,
        pytest.approx(2.25, abs=0.1),
    )
    assert one["command"] == "kubectl scale -n team-a statefulset/notebook --replicas=0"
    assert found["notKnown"] == ["team-a/mig"]
