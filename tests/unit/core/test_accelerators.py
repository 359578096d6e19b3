"""The 85 machine and GPU combinations of a public cloud, and five machines with GPUs built in.

``accelerators.csv`` says which numbers of GPUs a machine can have. Each cell is decided twice: by
what the GPUs allow beside them (a machine with k GPUs has at most k times so much CPU and memory),
and by the numbers on offer, where machines are handed out whole.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.builders import A100, GIB, ClusterBuilder, job, pod_shape, projects

from gpu_scheduler.core.model.catalogue import Catalogue, GPUType
from gpu_scheduler.core.model.cluster import Cluster
from gpu_scheduler.core.model.decision import Reason
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

FIXTURE = Path(__file__).parents[2] / "fixtures" / "accelerators" / "accelerators.csv"
PRODUCTS = {
    "K80": "Tesla-K80",
    "P4": "Tesla-P4",
    "P100": "Tesla-P100-PCIE-16GB",
    "T4": "Tesla-T4",
    "V100": "Tesla-V100-SXM2-16GB",
    "A100": A100,
}
# On offer, and what one GPU allows: vCPU and GB (fixtures' README).
ATTACHABLE = {
    "K80": ((1, 2, 4, 8), 8, 52),
    "P4": ((1, 2, 4), 24, 156),
    "P100": ((1, 2, 4), 16, 104),
    "T4": ((1, 2, 4), 24, 156),
    "V100": ((1, 2, 4, 8), 12, 78),
}


@dataclass(frozen=True)
class Cell:
    """A machine and a model: which numbers of GPUs it can have."""

    machine: str
    vcpu: int
    memory_gb: float
    model: str
    valid: tuple[int, ...]

    @property
    def cpu_milli(self) -> int:
        return self.vcpu * 1000

    @property
    def memory_bytes(self) -> int:
        return int(self.memory_gb * 10) * GIB // 10


def cells() -> list[Cell]:
    """All of the file, and the empty ones that it leaves out."""
    found: dict[tuple[str, str], Cell] = {}
    machines: dict[str, tuple[int, float]] = {}
    with FIXTURE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            size = int(row["vcpu"]), float(row["memory_gb"])
            machines[row["machine"]] = size
            valid = tuple(int(count) for count in row["valid_counts"].split())
            found[row["machine"], row["accelerator"]] = Cell(
                row["machine"], *size, row["accelerator"], valid
            )
    for machine, size in machines.items():
        if machine.startswith("n1-"):
            for model in ATTACHABLE:
                found.setdefault((machine, model), Cell(machine, *size, model, ()))
    return list(found.values())


CELLS = cells()
N1 = [cell for cell in CELLS if cell.machine.startswith("n1-")]
WITH_GPUS = [cell for cell in CELLS if cell.valid]


def name(cell: Cell) -> str:
    return f"{cell.machine}-{cell.model}"


def attached(model: str, count: int) -> Cluster:
    """The largest machine that may have so many GPUs of a model."""
    _, vcpu, memory_gb = ATTACHABLE[model]
    most_vcpu, most_gb = count * vcpu, count * memory_gb
    if model == "K80":
        most_gb = min(most_gb, 208)
    if (model, count) == ("P100", 4):
        most_vcpu, most_gb = 64, 208
    return (
        ClusterBuilder()
        .node(
            "largest",
            count,
            PRODUCTS[model],
            cpu_milli=most_vcpu * 1000,
            memory_bytes=most_gb * GIB,
        )
        .obj()
    )


def offered(cell: Cell) -> Cluster:
    """One machine for each number of GPUs that it can have, handed out whole."""
    builder = ClusterBuilder()
    for count in cell.valid:
        builder.node(
            f"{cell.machine}-{count}",
            count,
            PRODUCTS[cell.model],
            cpu_milli=cell.cpu_milli,
            memory_bytes=cell.memory_bytes,
        )
    cluster = builder.obj()
    cluster.catalogue = Catalogue((GPUType("machines", cell.model.lower(), None, cell.valid),))
    return cluster


def verdict(cell: Cell, count: int, cluster: Cluster) -> tuple[Reason | None, str]:
    """Of a pod that asks for the whole machine and so many GPUs; None = it starts."""
    what = pod_shape(
        1000,
        count=count,
        models=(cell.model.lower(),),
        cpu_milli=cell.cpu_milli,
        memory_bytes=cell.memory_bytes,
    )
    result = plan(PlanInput(cluster, projects(), [job("j", what)]))
    if result.assignments:
        assert len(result.assignments[0].devices) == count
        return None, ""
    return result.waits[0].reason, result.waits[0].message


def test_the_file_has_all_85_combinations_and_five_machines_with_gpus_built_in():
    assert len(N1) == 85
    assert len([cell for cell in N1 if cell.valid]) == 75
    assert len(CELLS) - len(N1) == 5


@pytest.mark.parametrize("cell", N1, ids=name)
def test_the_planner_finds_for_which_numbers_the_machine_can_exist(cell: Cell):
    counts = ATTACHABLE[cell.model][0]
    found = {count: verdict(cell, count, attached(cell.model, count))[0] for count in counts}
    assert found == {
        count: None if count in cell.valid else Reason.UNSATISFIABLE for count in counts
    }


def placed_pods(count: int, valid: tuple[int, ...]) -> str:
    below = [each for each in valid if each < count][-1:]
    borrowing = [each for each in valid if each > count][:1]
    return " or ".join(str(each) for each in below + borrowing)


@pytest.mark.parametrize("cell", WITH_GPUS, ids=name)
def test_numbers_that_are_not_on_offer_are_answered_with_the_nearest_that_are(cell: Cell):
    cluster = offered(cell)
    for count in range(1, 18):
        reason, message = verdict(cell, count, cluster)
        if count in cell.valid:
            assert reason is None
        else:
            assert reason is Reason.UNSATISFIABLE
            nearest = f"{placed_pods(count, cell.valid)} {cell.model}"
            assert f"nodes give {nearest}; {count} is not possible on any node" in message


def test_three_t4_where_two_or_four_are_on_offer():
    cell = next(c for c in CELLS if (c.machine, c.model) == ("n1-standard-32", "T4"))
    assert verdict(cell, 3, offered(cell)) == (
        Reason.UNSATISFIABLE,
        "needs 3 GPUs (t4); nodes give 2 or 4 T4; 3 is not possible on any node",
    )


def test_without_numbers_on_offer_three_gpus_fit_a_node_with_four():
    cluster = ClusterBuilder().node("a", 2, "Tesla-T4").node("b", 4, "Tesla-T4").obj()
    result = plan(
        PlanInput(cluster, projects(), [job("j", pod_shape(1000, count=3, models=("t4",)))])
    )
    assert [place.node for place in result.assignments] == ["b"]


def test_a_share_of_a_gpu_does_not_ask_for_a_number_on_offer():
    cluster = ClusterBuilder().node("a", 2, "Tesla-T4").obj()
    cluster.catalogue = Catalogue((GPUType("t4", "t4", None, (2,)),))
    result = plan(
        PlanInput(cluster, projects(), [job("j", pod_shape(500)), job("k", pod_shape(1000))])
    )
    assert [place.job for place in result.assignments] == ["ns/j"]
    assert result.waits[0].message == (
        "needs 1 GPU; nodes give 2 GPUs; 1 is not possible on any node"
    )


def test_where_cpu_stands_in_the_way_the_number_that_would_fit_is_named():
    cluster = (
        ClusterBuilder()
        .node("a", 8, "Tesla-V100-SXM2-16GB", cpu_milli=32_000)
        .node("b", 4, "Tesla-V100-SXM2-16GB", cpu_milli=64_000)
        .obj()
    )
    what = pod_shape(1000, count=8, models=("v100",), cpu_milli=64_000)
    wait = plan(PlanInput(cluster, projects(), [job("j", what)])).waits[0]
    assert wait.reason is Reason.UNSATISFIABLE
    assert wait.message == (
        "needs 64 CPU; the largest of the 1 node that it may use has 32; 4 V100 would fit"
    )
