"""Who holds the GPUs: on lines, as values, and when not everything may be read."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.node_objects import (
    GPUJOBS,
    GPUNODES,
    NODES,
    PODS,
    PROJECTS,
    gpunode,
    node,
    pod,
    report,
)
from tests.unit.cli.objects_server import Objects, serving

from gpu_scheduler.cli.holders import bars
from gpu_scheduler.cli.holders.held import held, holder_of, short_model
from gpu_scheduler.cli.root import app

HALF = pod("frac05-0-x", "r7525-0", ("0", 500), job="frac05")
THIRD = pod("frac03-0-x", "r7525-0", ("0", 300), job="frac03")


@pytest.fixture
def objects() -> Objects:
    return Objects({NODES: [node("r7525-0"), node("r7525-1")], GPUNODES: [], PODS: [HALF, THIRD]})


@pytest.fixture
def top(objects: Objects, tmp_path: Path) -> Iterator[Any]:
    with serving(objects, tmp_path) as kubeconfig:

        def run(*arguments: str, **more: Any) -> Result:
            runner = CliRunner(env={"KUBECONFIG": kubeconfig}, **more)
            return runner.invoke(app, ["top", *arguments])

        yield run


def test_a_gpu_has_a_bar_and_its_holders(top: Any) -> None:
    assert top("gpus").output.splitlines() == [
        "r7525-0/0 A100  █████▓▓▓░░ 0.80  frac05 0.50  frac03 0.30  util -",
        "r7525-0/1 A100  ░░░░░░░░░░ 0.00",
        "r7525-1/0 A100  ░░░░░░░░░░ 0.00",
        "r7525-1/1 A100  ░░░░░░░░░░ 0.00",
        "0.8 of 4 GPUs is allocated; what they do is not known. Three whole GPUs are free.",
        "util -: no agent has reported: kubectl gpu check",
    ]


GONE = pod(
    "gone-0-x",
    "r7525-0",
    ("1", 500),
    job="gone",
    creationTimestamp="2026-01-01T00:00:00Z",
    deletionTimestamp="2026-01-01T01:10:00Z",
    deletionGracePeriodSeconds=600,
)
SAID = (
    "pod team-a/gone-0-x holds 0.5 GPU on r7525-0 and is terminating since 2026-01-01T01:00:00Z:"
    " its GPUJob gone is deleted, and the share is free when its containers have ended"
)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("", True),
        ("2026-01-01T00:30:00Z", True),  # another one of that name
        ("2025-12-31T23:59:00Z", False),
    ],
)
def test_a_pod_that_outlives_its_job_is_told_with_since_when_it_ends(
    top: Any, objects: Objects, made: str, told: bool
) -> None:
    objects.lists[PODS].append(GONE)
    meta = {"name": "gone", "namespace": "team-a", "creationTimestamp": made}
    objects.lists[GPUJOBS] = [{"metadata": meta}] if made else []
    for what in ("gpus", "jobs"):
        words = " ".join(top(what).output.split())
        assert (SAID in words) is told
    total = json.loads(top("gpus", "-o", "json").output)["total"]
    assert [each["job"] for each in total.get("leftBehind", ())] == ["gone"] * told


def test_a_pod_that_runs_on_as_nobodys_is_told(top: Any, objects: Objects) -> None:
    said = "no GPUJob owns this pod any more"
    orphan = pod("left-0-x", "r7525-0", ("1", 500), job="left")
    owned = {"type": "gpu-scheduler.io/Owned", "status": "False", "message": said}
    orphan["status"] = {**orphan.get("status", {}), "phase": "Running", "conditions": [owned]}
    objects.lists[PODS].append(orphan)
    objects.lists[GPUJOBS] = [{"metadata": {"name": "left", "namespace": "team-a"}}]
    assert f"pod team-a/left-0-x: {said}" in " ".join(top("jobs").output.split())
    total = json.loads(top("gpus", "-o", "json").output)["total"]
    assert [(each["job"], each["reason"]) for each in total["leftBehind"]] == [
        ("left", "OwnerGone")
    ]


def test_what_is_held_for_pods_that_do_not_exist_is_shown_and_is_no_free_gpu(
    top: Any, objects: Objects
) -> None:
    def room(device: str, milli: int, held_as: str) -> dict[str, Any]:
        return {"node": "r7525-1", "device": device, "milliGPU": milli, "heldAs": held_as}

    def job(name: str, *rooms: dict[str, Any]) -> dict[str, Any]:
        meta = {"name": name, "namespace": "team-a"}
        return {"metadata": meta, "status": {"heldRoom": list(rooms)}}

    objects.lists[GPUJOBS] = [
        job("whole", room("0", 1000, "nominated")),
        job("wide", room("1", 500, "reserved"), room("gone", 500, "reserved")),
        {"metadata": {"name": "odd", "namespace": "team-a"}, "status": {"heldRoom": [{}]}},
    ]
    lines = top("gpus").output.splitlines()
    assert lines[2:5] == [
        "r7525-1/0 A100  ░░░░░░░░░░ 0.00  held for a pod to come of whole 1.00",
        "r7525-1/1 A100  ░░░░░░░░░░ 0.00  kept for wide 0.50",
        "0.8 of 4 GPUs is allocated; what they do is not known. One whole GPU is free.",
    ]
    assert "0 entirely free" in top("nodes").output.splitlines()[1]
    found = json.loads(top("gpus", "-o", "json").output)
    (kept,) = [each for each in str(found).split("heldFor") if "whole" in each]
    assert "nominated" in kept


def test_who_may_not_read_gpujobs_sees_the_rest(top: Any, objects: Objects) -> None:
    objects.forbidden.add(GPUJOBS)
    assert top("gpus").output.splitlines()[0].startswith("r7525-0/0 A100  █████▓▓▓░░ 0.80")


def test_where_the_output_knows_no_blocks_there_are_letters(top: Any) -> None:
    first = top("gpus", charset="ascii").output.splitlines()[0]
    assert first == "r7525-0/0 A100  #####===-- 0.80  frac05 0.50  frac03 0.30  util -"


def test_utilisation_is_what_the_agents_measured(top: Any, objects: Objects) -> None:
    said = [report(HALF, 60), report(THIRD, 30)]
    objects.lists[GPUNODES] = [gpunode("r7525-0", "GPU-a", "GPU-b", containers=said)]
    lines = top("gpus").output.splitlines()
    assert lines[0].endswith("util 90 %")
    assert not lines[-1].startswith("util")
    objects.lists[GPUNODES] = [gpunode("r7525-0", "GPU-a", containers=said[:1])]
    lines = top("gpus").output.splitlines()
    assert lines[0].endswith("util -")
    assert lines[-1].startswith("util -: the agents have not measured it yet")


def test_names_of_several_namespaces_bear_theirs(top: Any, objects: Objects) -> None:
    objects.lists[PODS].append(pod("x", "r7525-1", ("1", 1000), namespace="team-b"))
    lines = top("gpus").output.splitlines()
    assert "team-a/frac05 0.50  team-a/frac03 0.30" in lines[0]
    assert lines[3] == "r7525-1/1 A100  ██████████ 1.00  team-b/x 1.00  util -"


def test_pods_of_one_holder_add_up(top: Any, objects: Objects) -> None:
    objects.lists[PODS] = [pod(f"s-{i}", "r7525-0", ("1", 250), job="s") for i in range(3)]
    assert "███████▒" not in (line := top("gpus").output.splitlines()[1])
    assert "0.75  s 0.75 in 3 pods" in line


def test_nodes_jobs_and_projects(top: Any, objects: Objects) -> None:
    objects.lists[PROJECTS] = [
        {
            "metadata": {"name": "team-a"},
            "spec": {"quota": 0.5},
            "status": {"allocatedGPU": "0.8", "pendingGPU": "2"},
        }
    ]
    assert top("nodes").output.splitlines()[:2] == [
        "r7525-0  ████░░░░░░ 0.80 of 2  A100  1 entirely free  util -",
        "r7525-1  ░░░░░░░░░░ 0.00 of 2  A100  2 entirely free  util -",
    ]
    rows = [line.split() for line in top("jobs").output.splitlines()[:3]]
    assert rows[0][:3] == ["NAMESPACE/NAME", "PROJECT", "GPU"]
    assert [row[:4] for row in rows[1:]] == [
        ["team-a/frac05", "team-a", "0.50", "-"],
        ["team-a/frac03", "team-a", "0.30", "-"],
    ]
    assert top("projects").output.splitlines()[0] == (
        "team-a  ██████▓▓▓▓ 0.80 of 0.50  0.30 borrowed  2.00 pending"
    )


def test_json_has_devices_holders_and_sums(top: Any) -> None:
    found = json.loads(top("gpus", "-o", "json").output)
    assert found["total"] == {"gpus": 4, "allocatedMilliGPU": 800}
    first = found["devices"][0]
    assert (first["node"], first["index"], first["allocatedMilliGPU"]) == ("r7525-0", 0, 800)
    assert [(h["name"], h["milliGPU"]) for h in first["holders"]] == [
        ("frac05", 500),
        ("frac03", 300),
    ]
    jobs = json.loads(top("jobs", "-o", "json").output)["jobs"]
    assert [(job["name"], job["pods"]) for job in jobs] == [
        ("frac05", ["frac05-0-x"]),
        ("frac03", ["frac03-0-x"]),
    ]


def test_who_may_see_one_namespace_is_told_so(top: Any, objects: Objects) -> None:
    objects.lists[PODS].append(pod("x", "r7525-1", ("1", 1000), namespace="team-b"))
    objects.forbidden |= {PODS, NODES}
    objects.lists[GPUNODES] = [gpunode("r7525-0", "GPU-a", "GPU-b")]
    objects.lists[PROJECTS] = [
        {"metadata": {"name": n}, "status": {"allocatedGPU": has}}
        for n, has in (("team-a", "0.8"), ("team-b", "1"))
    ]
    result = top("gpus")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith("r7525-0/0 A100  █████▓▓▓?? 0.80  frac05 0.50")
    assert lines[1] == "r7525-0/1 A100  ?????????? 0.00"
    assert "entirely free" not in result.output + top("nodes").output
    (one,) = json.loads(top("nodes", "-o", "json").output)["nodes"]
    assert (one["allocatedMilliGPU"], one["entirelyFree"]) == (800, None)
    assert "1.80 of 2 GPUs allocated, as the projects' status says" in lines
    assert any("than team-a (not yours): you may not list their pods" in line for line in lines)
    assert "team-b" not in result.output


def test_who_may_read_no_nodes_sees_what_pods_hold(top: Any, objects: Objects) -> None:
    objects.forbidden |= {NODES, GPUNODES}
    result = top("gpus")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "r7525-0/0  █████▓▓▓░░ 0.80  frac05 0.50  frac03 0.30  util -"
    assert lines[1].startswith("0.80 GPUs held: pods that you may see are shown, as you may read")
    assert "rbac.inventoryReaders" in lines[1]
    assert lines[2] == "util -: what agents measure stands in GPUNodes, which you may not read"
    assert top("nodes").output.splitlines()[0] == "r7525-0  ████████?? 0.80 of ?"
    objects.lists[PODS] = []
    (alone, *_) = top("jobs").output.splitlines()
    assert alone.startswith("No pod that you may see holds a GPU; you may read neither")


def test_who_may_read_nothing_gets_one_line(top: Any, objects: Objects) -> None:
    objects.forbidden |= {NODES, GPUNODES, PODS, "/api/v1/namespaces/team-a/pods"}
    result = top("gpus")
    assert (result.exit_code, result.stderr.count("\n"), result.stdout) == (1, 1, "")
    assert "you may read neither gpunodes.gpu-scheduler.io nor nodes" in result.stderr


def test_who_may_read_no_projects_gets_one_line(top: Any, objects: Objects) -> None:
    objects.lists[PROJECTS] = []
    objects.forbidden.add(PROJECTS)
    assert top("projects").output == (
        "You may not read gpuprojects.gpu-scheduler.io: an administrator lets you with "
        "rbac.inventoryReaders of the chart.\n"
    )


def test_a_cluster_without_gpus_says_what_to_look_at(top: Any, objects: Objects) -> None:
    objects.lists = {NODES: [], GPUNODES: [], PODS: []}
    assert top("gpus").output == ("no node has a GPU that the scheduler knows: kubectl gpu check\n")


def test_a_cluster_without_our_kinds_is_no_cluster_without_gpus(top: Any, objects: Objects) -> None:
    del objects.lists[GPUNODES]
    result = top("gpus")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "CRDs are not installed" in result.stderr


def test_a_pod_that_ended_holds_nothing_and_an_index_means_the_uuid() -> None:
    ended = pod("old", "n", ("GPU-b", 1000), phase="Succeeded")
    early = pod("early", "n", ("1", 400))
    found = held([node("n")], [gpunode("n", "GPU-a", "GPU-b")], [ended, early])
    assert [(d.id, d.milli, [s.name for s in d.shares]) for d in found] == [
        ("GPU-a", 0, []),
        ("GPU-b", 400, ["early"]),
    ]


def test_a_device_that_is_gone_is_still_held() -> None:
    (*_, gone) = held([node("n", 1)], [], [pod("p", "n", ("GPU-x", 1000))])
    assert (gone.id, gone.milli, gone.trouble) == ("GPU-x", 1000, "is not there any more")


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None},
        {"metadata": {"name": "p", "annotations": {"gpu-scheduler.io/allocation": "[]"}}},
        {"metadata": {"name": "p", "labels": None}, "status": None},
    ],
)
def test_odd_bodies_count_for_nothing(odd: dict[str, Any]) -> None:
    found = held([node("n", 1), odd], [gpunode("n"), odd], [odd])
    assert [device.milli for device in found] == [0]


def test_nodes_come_in_the_order_of_their_numbers() -> None:
    found = held([node(f"n{i}", 1) for i in (10, 9, 1)], [], [])
    assert [device.node for device in found] == ["n1", "n9", "n10"]


def test_a_pod_of_a_deployment_is_called_by_it() -> None:
    owner = {"kind": "ReplicaSet", "name": "server-5d4f", "controller": True}
    of = pod("server-5d4f-x", "n", labels={"pod-template-hash": "5d4f"}, ownerReferences=[owner])
    assert holder_of(of) == "server"
    assert holder_of(pod("alone", "n")) == "alone"


@pytest.mark.parametrize(
    ("model", "short"),
    [
        ("NVIDIA-A100-PCIE-40GB", "A100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("Tesla-T4", "T4"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("odd", "odd"),
        ("", ""),
    ],
)
def test_models_have_short_names(model: str, short: str) -> None:
    assert short_model(model) == short


@pytest.mark.parametrize(
    ("parts", "drawn"),
    [
        ([(500, 200), (300, 300)], "##+++###--"),
        ([(1000, 0)], "++++++++++"),
        ([(500, None), (500, 500)], "=====#####"),
        ([(10, 5)], "+---------"),
        ([], "----------"),
    ],
)
def test_a_bar_of_use_shows_what_is_used_within_what_is_held(
    parts: list[tuple[int, int | None]], drawn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "_knows", lambda text: False)
    pieces = bars.use_bar([bars.Part(*part) for part in parts], 1000)
    assert "".join(piece.text for piece in pieces) == drawn


@pytest.mark.parametrize(
    ("parts", "drawn"),
    [
        ([], "----------"),
        ([1000], "##########"),
        ([10], "#---------"),
        ([990, 10], "##########"),
        ([500, 500], "#####====="),
        ([1500], "##########"),
        ([40, 40, 40], "#=+-------"),
    ],
)
def test_a_bar_is_as_long_as_what_is_held(
    parts: list[int], drawn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "_knows", lambda text: False)
    assert "".join(piece.text for piece in bars.bar(parts, 1000)) == drawn


def test_a_command_is_not_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    bars.print_text("kubectl gpu suspend -n team-a train", indent="  ")
    bars.print_text("words that are folded", indent="  ")
    assert capsys.readouterr().out.splitlines() == [
        "  kubectl gpu suspend -n team-a train",
        "  words that are",
        "  folded",
    ]


def test_a_line_is_folded_between_groups_and_nothing_is_lost() -> None:
    line = [[bars.Piece(f"word{i}")] for i in range(6)]
    rows = ["".join(piece.text for piece in row) for row in bars.fold(line, 20, 4)]
    assert rows == ["word0  word1  word2", "    word3  word4", "    word5"]
    assert len(bars.fold(line, 0, 4)) == 1


def test_watching_looks_again_until_it_is_interrupted(
    top: Any, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        objects.lists[PODS] = []
        if len(waited) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    result = top("gpus", "-w", "--interval", "3")
    assert (result.exit_code, waited) == (0, [3, 3])
    looks = result.output.split("\n\n")
    assert ["0.8 of 4" in look for look in looks] == [True, False]
    assert "None of 4 GPUs is allocated." in looks[1]


def test_what_many_small_requests_in_mib_cost_is_no_more_than_a_gpu(
    top: Any, objects: Objects
) -> None:
    objects.lists[PODS] = [
        pod(f"small-{n}", "r7525-0", ("0", 2), job=f"small-{n // 300}") for n in range(815)
    ]
    said = json.loads(top("gpus", "-o", "json").output)
    assert [each["allocatedMilliGPU"] for each in said["devices"]] == [1000, 0, 0, 0]
    assert "1 of 4 GPUs" in top("gpus").output
