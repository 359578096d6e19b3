"""Fractions that fit one GPU together share one, whatever has been learned."""

from random import Random

import pytest
from tests.unit.builders import ClusterBuilder, job, pod_shape, projects
from tests.unit.core.test_cases import by_device

from gpu_scheduler.core.fit.session import PlannerCache
from gpu_scheduler.core.model.decision import Plan
from gpu_scheduler.core.model.request import DeviceRequest, PodShape
from gpu_scheduler.core.packing.history import History
from gpu_scheduler.core.packing.policy import Packing
from gpu_scheduler.core.packing.target_workload import TargetWorkload
from gpu_scheduler.core.plan import plan
from gpu_scheduler.core.plan_input import PlanInput

HISTORIES = 1_000
SHARING = (Packing.FRAGMENTATION, Packing.BEST_FIT)
POLICY = pytest.mark.parametrize("packing", SHARING)


def learned(placed: dict[PodShape, int]) -> TargetWorkload:
    history = History()
    history.note(placed)
    return history.workload


def any_pod(random: Random) -> PodShape:
    """A pod of any size: fractions, whole GPUs, several of either, in several containers."""
    cpu_milli = random.choice([0, 0, 500, 4000, 16_000])
    count = random.choice([1, 1, 1, 2, 4, 8])
    milli = random.choice([1000, 500, 250, 125, 900, random.randint(1, 1000)])
    if random.randrange(10) == 0:
        two = [DeviceRequest(0, 1, milli), DeviceRequest(1, 1, random.randint(1, 1000))]
        return pod_shape(containers=two, cpu_milli=cpu_milli)
    return pod_shape(milli, count=count, cpu_milli=cpu_milli)


def any_history(random: Random) -> TargetWorkload:
    kinds = [any_pod(random) for _ in range(random.choice([1, 1, 2, 5]))]
    return learned({kind: random.choice([1, 100, 8_000, 19_000]) for kind in kinds})


def fractions(random: Random) -> list[int]:
    """Two to five, of one GPU together."""
    count = random.randint(2, 5)
    cuts = sorted(random.sample(range(1, 1000), count))
    return [after - before for before, after in zip([0, *cuts], cuts, strict=False)]


def planned(
    builder: ClusterBuilder, milli: list[int], packing: Packing, workload: TargetWorkload
) -> Plan:
    jobs = [job(f"f{n}", pod_shape(m, cpu_milli=0), created=n) for n, m in enumerate(milli)]
    given = PlanInput(builder.obj(), projects(), jobs, packing=packing, workload=workload)
    return plan(given, PlannerCache())


@POLICY
def test_a_half_and_three_tenths_share_one_gpu_where_quarters_are_usual(packing: Packing):
    workload = learned({pod_shape(250): 8_000})
    result = planned(ClusterBuilder().node("a", 2), [500, 300], packing, workload)
    assert by_device(result) == {"a/0": 800}


@POLICY
def test_they_share_one_gpu_of_a_cluster_of_free_nodes(packing: Packing):
    workload = learned({pod_shape(250): 8_000})
    builder = ClusterBuilder().node("a", 2).node("b", 2).node("c", 4)
    (held,) = by_device(planned(builder, [500, 300], packing, workload)).values()
    assert held == 800


@pytest.mark.long
@POLICY
def test_fractions_of_one_gpu_share_one_of_a_node_whatever_was_learned(packing: Packing):
    for seed in range(HISTORIES):
        random = Random(seed)
        milli = fractions(random)
        builder = ClusterBuilder().node(
            "a", random.randint(2, 8), cpu_milli=random.choice([0, 2000, 64_000, 128_000])
        )
        result = planned(builder, milli, packing, any_history(random))
        assert list(by_device(result).values()) == [sum(milli)], seed


@pytest.mark.long
@POLICY
def test_they_share_one_of_several_nodes_where_each_pod_that_was_learned_is_on_one_gpu(
    packing: Packing,
):
    for seed in range(HISTORIES):
        random = Random(seed)
        milli, gpus = fractions(random), random.randint(2, 8)
        builder = ClusterBuilder()
        for number in range(random.randint(2, 5)):
            builder.node(f"n{number}", gpus)
        kinds = [pod_shape(random.choice([1000, random.randint(1, 1000)])) for _ in range(3)]
        workload = learned({kind: random.choice([1, 100, 8_000]) for kind in kinds})
        result = planned(builder, milli, packing, workload)
        assert list(by_device(result).values()) == [sum(milli)], seed
