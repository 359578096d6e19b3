from random import Random

import pytest
from tests.perf.replay.causes import Cause
from tests.perf.replay.lifetimes import LifetimeEvent
from tests.perf.replay.run import FillPlayer
from tests.perf.replay.trace import TraceNode
from tests.unit.builders import pod_shape

from gpu_scheduler.core.model.request import PodShape
from gpu_scheduler.core.packing.policy import Packing

GIB = 1 << 30
NODES = [
    TraceNode("large", 64_000, 256 * GIB, 4, "G2"),
    TraceNode("small", 8_000, 32 * GIB, 2, "T4"),
]


def nothing() -> None:
    pass


@pytest.mark.parametrize("packing", list(Packing))
def test_cpu_memory_gpu_and_model_are_hard_filters(packing: Packing):
    pods = [
        pod_shape(1000, count=4),
        pod_shape(500, cpu_milli=10_000),  # the CPU of the small node is not enough
        pod_shape(500, memory_bytes=64 * GIB),
        pod_shape(500, models=("g2",)),
        pod_shape(500, models=("g3",)),
        pod_shape(1000, count=2),
        pod_shape(1, cpu_milli=1),
    ]
    steps = FillPlayer(NODES, pods, packing).fill(pods, nothing)
    assert [step.placed for step in steps] == [True, False, False, False, False, True, False]
    assert [step.allocated_milli for step in steps][-1] == 6000


def test_a_pod_that_leaves_gives_back_what_it_took():
    big = pod_shape(1000, count=4, cpu_milli=64_000)
    events = [
        LifetimeEvent(0.0, 0, big),
        LifetimeEvent(0.1, 1, big),
        LifetimeEvent(0.2, 1, None),  # it was lost: nothing to give back
        LifetimeEvent(0.3, 0, None),
        LifetimeEvent(0.4, 2, big),
    ]
    player = FillPlayer(NODES, [big], Packing.FRAGMENTATION)
    steps = player.churn(events, nothing)
    assert [step.placed for step in steps] == [True, False, True]
    assert player.allocated_milli == 4000


@pytest.mark.parametrize("packing", list(Packing))
def test_the_same_stream_is_placed_the_same_way(packing: Packing):
    random = Random(7)
    some = [
        pod_shape(1000),
        pod_shape(500, cpu_milli=900),
        pod_shape(250),
        pod_shape(1000, count=2),
    ]
    pods = random.choices(some, k=60)
    nodes = [TraceNode(f"n{i}", 16_000, GIB, i % 3 + 1, "T4") for i in range(9)]
    one, two = (FillPlayer(nodes, pods, packing) for _ in range(2))
    first = [(s.placed, s.allocated_milli) for s in one.fill(pods, nothing)]
    assert first == [(s.placed, s.allocated_milli) for s in two.fill(pods, nothing)]
    assert one.session.snapshot.cluster == two.session.snapshot.cluster
    assert min(one.session.snapshot.cluster.free_milli) >= 0


@pytest.mark.parametrize(
    ("pods", "cause"),
    [
        ([pod_shape(600), pod_shape(600), pod_shape(700)], Cause.FRAGMENTED),
        ([pod_shape(500, cpu_milli=8_000), pod_shape(500, cpu_milli=8_000)], Cause.RESOURCES),
        ([pod_shape(1000, models=("t4",))] * 3, Cause.OVERLOAD),
        ([pod_shape(500, models=("g3",))], Cause.NEVER),
        ([pod_shape(cpu_milli=9_000)], Cause.NEVER),
    ],
)
def test_a_lost_pod_has_a_cause(pods: list[PodShape], cause: Cause):
    player = FillPlayer(NODES[1:], pods, Packing.BEST_FIT, causes=True)
    *before, last = player.fill(pods, nothing)
    assert (last.placed, last.cause) == (False, cause)
    assert {step.cause for step in before} <= {None}


def test_gpus_of_another_model_are_no_reason_to_speak_of_fragments():
    pods = [pod_shape(1000, count=2, models=("t4",)), pod_shape(500, models=("t4",))]
    steps = FillPlayer(NODES, pods, Packing.BEST_FIT, causes=True).fill(pods, nothing)
    assert [step.cause for step in steps] == [None, Cause.MODEL]


def test_who_has_left_asks_for_nothing_any_more():
    whole, part = pod_shape(1000, count=2), pod_shape(600)
    events = [
        LifetimeEvent(0.0, 0, whole),
        LifetimeEvent(0.1, 1, whole),  # lost, and would still be there
        LifetimeEvent(0.2, 0, None),
        LifetimeEvent(0.3, 1, None),
        *(LifetimeEvent(0.4, number, part) for number in (2, 3)),
        LifetimeEvent(0.5, 4, pod_shape(700)),
    ]
    player = FillPlayer(NODES[1:], [whole, part, pod_shape(700)], Packing.BEST_FIT, causes=True)
    steps = player.churn(events, nothing)
    assert [step.cause for step in steps] == [None, Cause.OVERLOAD, None, None, Cause.FRAGMENTED]
