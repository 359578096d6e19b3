"""The vectorised terms against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.builders import pod_shape
from tests.unit.core.packing import definitions
from tests.unit.core.packing.definitions import State
from tests.unit.core.packing.workloads import KINDS, device, free_milli, target_workloads

from gpu_scheduler.core.model.snapshot import NodeShape
from gpu_scheduler.core.packing.load import ShapeLoad
from gpu_scheduler.core.packing.policy import WEIGHT
from gpu_scheduler.core.packing.target_workload import TargetWorkload, target_workload_of


@st.composite
def described(draw: st.DrawFn) -> tuple[TargetWorkload, NodeShape, list[State]]:
    kind = draw(st.sampled_from(KINDS))
    cpu = st.sampled_from([0, 499, 500, 2000, 7999, 8000, 33_000])
    one = st.tuples(free_milli(len(kind)), cpu)
    states = [State(kind, free, cpu) for free, cpu in draw(st.lists(one, min_size=1, max_size=4))]
    return draw(target_workloads()), kind, states


@settings(deadline=None)
@given(described())
def test_fragmentation_is_what_its_definition_says(
    case: tuple[TargetWorkload, NodeShape, list[State]],
):
    workload, kind, states = case
    load = ShapeLoad(kind, workload)
    nodes = np.stack([load.base(list(state.free)) for state in states])
    allowed = load.allowed(np.array([state.cpu for state in states]))
    found = load.usable(nodes, allowed.weight).tolist()
    assert found == [s.total * WEIGHT - definitions.fragmentation(s, workload) for s in states]


@settings(deadline=None)
@given(described())
def test_what_copies_leave_unused_is_what_its_definition_says(
    case: tuple[TargetWorkload, NodeShape, list[State]],
):
    workload, kind, states = case
    load = ShapeLoad(kind, workload)
    nodes = np.stack([load.base(list(state.free)) for state in states])
    allowed = load.allowed(np.array([state.cpu for state in states]))
    found = load.used(nodes, allowed.copies).tolist()
    assert found == [s.total * WEIGHT - definitions.unused(s, workload) for s in states]


def test_half_a_device_is_useless_to_who_wants_a_whole_one():
    workload = target_workload_of({pod_shape(1000, cpu_milli=1000): 1})
    load = ShapeLoad((device("Tesla-T4"),) * 2, workload)
    nodes = np.stack([load.base([500, 1000]), load.base([1000, 1000]), load.base([500, 500])])
    enough, too_little = load.allowed(np.array([1000] * 3)), load.allowed(np.array([999] * 3))
    assert (load.usable(nodes, enough.weight) // WEIGHT).tolist() == [1000, 2000, 0]
    assert load.usable(nodes, too_little.weight).tolist() == [0, 0, 0]


def test_copies_see_the_cpu_run_out_before_the_gpu():
    workload = target_workload_of({pod_shape(1000, cpu_milli=6000): 1})
    load = ShapeLoad((device("Tesla-T4"),) * 4, workload)
    nodes = np.stack([load.base([1000] * 4)] * 2)
    allowed = load.allowed(np.array([24_000, 12_000]))
    assert (load.usable(nodes, allowed.weight) // WEIGHT).tolist() == [4000, 4000]
    assert (load.used(nodes, allowed.copies) // WEIGHT).tolist() == [4000, 2000]
