"""``fit``: how many pods of a size the planner would start now, and where."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cli.objects_server import serving
from tests.unit.cli.test_why import served
from tests.unit.simulate.scenes import NOW, cluster, holds, node, waits
from tests.unit.simulate.test_what_if import project

from gpu_scheduler.cli.root import app
from gpu_scheduler.simulate.cluster_objects import Objects, SimulationError
from gpu_scheduler.simulate.fitting import Size, fit

Json = dict[str, Any]


def places(found: Json) -> dict[str, int]:
    return {each["node"]: each["pods"] for each in found["nodes"]}


def ask(objects: Objects, count: int | None = None, **size: Any) -> Json:
    return fit(objects, Size(**size), "team-a", count, NOW)


def test_as_many_as_there_is_room_for_with_the_reason_why_not_more() -> None:
    found = ask(cluster(), gpu=0.3)
    assert (found["fits"], places(found)) == (12, {"a": 6, "b": 6})
    assert found["reason"] == "Fragmented" and "best node" in found["message"]
    assert found["enough"] is None


def test_no_more_than_the_project_may_hold() -> None:
    found = ask(cluster(project(quota=1, weight=0)), 5, gpu=0.3)
    assert (found["fits"], found["enough"], found["reason"]) == (3, False, "WaitingForQuota")


def test_what_goes_beyond_the_quota_is_said_to_be_borrowed() -> None:
    found = ask(cluster(project(quota=1)), gpu=1)
    assert (found["fits"], found["borrows"]) == (4, "3")


def test_who_waits_already_goes_first() -> None:
    found = ask(cluster(*waits("train", gpu=1, pods=3)), gpu=1)
    assert found["fits"] == 1


def test_nobody_gives_way() -> None:
    full = (("a", "0", 1000), ("a", "1", 1000), ("b", "0", 1000), ("b", "1", 1000))
    objects = cluster(project(quota=0), *holds("low", *full, priority=0))
    objects.put("GPUProject", project("team-b", quota=4))
    found = fit(objects, Size(gpu=1), "team-b", 1, NOW)
    assert (found["fits"], found["enough"], found["reason"]) == (0, False, "WaitingForGPU")


def test_cpu_model_and_node_labels_count() -> None:
    assert ask(cluster(), gpu=0.1, cpu="30")["fits"] == 4
    assert ask(cluster(), gpu=1, models=["H100"])["reason"] == "Unsatisfiable"
    objects = cluster(project(quota=9), node("c", labels={"zone": "x"}))
    assert places(ask(objects, gpu=1, selector={"zone": "x"})) == {"c": 2}


def test_device_memory_and_several_devices() -> None:
    assert ask(cluster(), gpu_memory="10Gi")["fits"] == 16
    found = ask(cluster(), gpu=0.5, devices=2)
    assert found["fits"] == 4
    assert [d["pods"] for d in found["nodes"][0]["devices"]] == [2, 2]


def test_a_namespace_without_a_project_is_told_so() -> None:
    found = fit(cluster(), Size(gpu=1), "nobody", None, NOW)
    assert (found["fits"], found["project"], found["reason"]) == (0, None, "Invalid")


def test_a_size_that_no_job_can_ask_for_is_refused_with_its_field() -> None:
    with pytest.raises(SimulationError, match=r"spec\.gpu"):
        ask(cluster(), gpu=1.5)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([0, 250, 500, 1000]), min_size=4, max_size=4), st.integers(50, 1000)
)
def test_one_more_never_fits_and_that_many_do(held: list[int], milli: int) -> None:
    """On devices alone the answer is known: as many as each device has room for."""
    places_ = [("a", "0"), ("a", "1"), ("b", "0"), ("b", "1")]
    taken = [(*at, m) for at, m in zip(places_, held, strict=True) if m]
    objects = cluster(project(quota=100), *(holds("low", *taken, gpu=0.5) if taken else []))
    whole = milli == 1000
    found = ask(objects, gpu=1 if whole else milli / 1000)
    assert found["fits"] == sum((1000 - m) // milli for m in held)
    assert found["fits"] == sum(places(found).values())


@pytest.mark.parametrize(("count", "code"), [("4", 0), ("5", 1)])
def test_the_exit_code_says_whether_so_many_fit(tmp_path: Path, count: str, code: int) -> None:
    with serving(served(cluster()), tmp_path) as kubeconfig:
        environment = {"KUBECONFIG": kubeconfig}
        words = ["fit", "-g", "1", "--count", count]
        done = CliRunner().invoke(app, words, env=environment, catch_exceptions=False)
        found = CliRunner().invoke(app, [*words, "-o", "json"], env=environment)
    assert done.exit_code == found.exit_code == code, done.output
    assert json.loads(found.output)["fits"] == 4
    assert ("Not more: WaitingForGPU" in done.output) == (code == 1)


@pytest.mark.parametrize(
    "words", [[], ["-g", "1", "--gpu-memory", "8Gi"], ["-g", "x"], ["-g", "1", "-l", "zone"]]
)
def test_a_wrong_command_line_ends_with_2_in_one_line(words: list[str], tmp_path: Path) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "none")}
    done = CliRunner().invoke(app, ["fit", *words], env=environment, catch_exceptions=False)
    assert done.exit_code == 2 and done.stdout == "" and done.stderr.count("\n") == 1
