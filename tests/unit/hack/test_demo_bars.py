from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo import bars, gpus
from demo.bars import Gpu
from demo.observer import Peaks
from gpu_scheduler.api.allocation import annotations
from gpu_scheduler.core.model.decision import DeviceAllocation

HALF, THIRD = {"frac05": 500}, {"frac03": 300}


def make_pod(job: str, device: str, milli: int, *, phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{job}-0",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"gpu-scheduler.io/job": job},
            "annotations": annotations("node-0", [DeviceAllocation(0, device, milli, 100)]),
        },
        "status": {"phase": phase},
    }


def make_node(name: str = "node-0", **annotations: str) -> dict[str, Any]:
    labels = {
        "nvidia.com/gpu.count": "2",
        "nvidia.com/gpu.product": "NVIDIA-A100-PCIE-40GB",
        "nvidia.com/gpu.memory": "40960",
    }
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}}


def test_two_jobs_on_one_gpu_have_segments_of_their_own() -> None:
    (line,) = bars.lines([Gpu("node-0", 0, "A100", held=HALF | THIRD)], width=10)
    assert line == "  node-0/0  A100  █████▓▓▓░░  0.80  frac05 0.50 + frac03 0.30"


def test_a_free_gpu_is_an_empty_bar() -> None:
    assert bars.lines([Gpu("n", 1, "A30")], width=4) == ["  n/1  A30  ░░░░  0.00"]


def test_several_pods_of_one_job_are_counted() -> None:
    (line,) = bars.lines([Gpu("n", 0, "A100", held={"hpo1": 1000}, pods={"hpo1": 2})], width=2)
    assert line.endswith("hpo1 0.50 x 2")


def test_a_job_looks_the_same_on_every_gpu() -> None:
    lines = bars.lines(
        [Gpu("n", 0, "A", held={"a": 1000}), Gpu("n", 1, "A", held={"b": 500, "a": 500})], width=4
    )
    assert "████" in lines[0] and "▓▓██" in lines[1]


@given(st.lists(st.integers(1, 300), max_size=3), st.integers(1, 60))
def test_a_bar_is_as_wide_as_asked(shares: list[int], width: int) -> None:
    held = {str(number): milli for number, milli in enumerate(shares)}
    looks = {job: number for number, job in enumerate(held)}
    assert len(bars.bar(Gpu("n", 0, "A", held=held), looks, width)) == width


def test_holders_come_from_the_pods_that_have_not_ended() -> None:
    pods = [
        make_pod("frac03", "0", 300),
        make_pod("frac05", "0", 500),
        make_pod("done", "1", 900, phase="Succeeded"),
    ]
    first, second = gpus.gpus([make_node()], [], pods)
    assert list(first.held.items()) == [("frac05", 500), ("frac03", 300)]
    assert not second.held


def test_real_nodes_come_before_fake_ones() -> None:
    found = gpus.gpus([make_node("a", **{gpus.FAKE: "fake"}), make_node("b")], [], [])
    assert [(gpu.node, gpu.fake) for gpu in found[::2]] == [("b", False), ("a", True)]


@pytest.mark.parametrize(
    ("product", "model"),
    [("NVIDIA A100-PCIE-40GB", "A100"), ("Tesla-T4", "T4"), ("MI300X", "MI300X")],
)
def test_a_model_is_named_as_people_say_it(product: str, model: str) -> None:
    assert gpus.short(product) == model


def test_peaks_are_per_job_and_per_sample() -> None:
    peaks = Peaks()
    peaks.take([make_pod("hpo1", "0", 1000), make_pod("hpo1", "1", 1000)])
    peaks.take([make_pod("hpo1", "0", 1000), make_pod("other", "1", 500)])
    assert peaks.pods == {"hpo1": 2, "other": 1}
    assert peaks.milli == {"hpo1": 2000, "other": 500}
