"""Mixes and states for property tests."""

from hypothesis import strategies as st
from tests.unit.builders import A30, A100, COMPUTE, USABLE_MIB, pod_shape

from gpu_scheduler.core.model.request import DeviceRequest, NodeFilter, PodShape
from gpu_scheduler.core.model.snapshot import DeviceType
from gpu_scheduler.core.packing.target_workload import TargetWorkload, target_workload_of

PODS = [
    pod_shape(1000, cpu_milli=8000),
    pod_shape(500, cpu_milli=2000),
    pod_shape(330),
    pod_shape(810, cpu_milli=7000, memory_bytes=3 << 30),
    pod_shape(125, cpu_milli=500),
    pod_shape(1000, count=2, cpu_milli=16_000),
    pod_shape(1000, count=4, cpu_milli=32_000),
    pod_shape(250, count=2, cpu_milli=1000),
    pod_shape(mib=10_000, cpu_milli=3000),
    pod_shape(400, models=("a30",), cpu_milli=1000),
    pod_shape(700, min_compute=(9, 0)),
    pod_shape(containers=[DeviceRequest(0, 1, 400), DeviceRequest(1, 1, 300)], cpu_milli=2000),
    pod_shape(cpu_milli=4000),
    pod_shape(330, where=NodeFilter(selector=(("zone", "b"),))),
    pod_shape(330, scalars={"rdma/hca": 1}),
    pod_shape(1000, cpu_milli=2000, scalars={"hugepages-2Mi": 1 << 30, "rdma/hca": 2}),
    pod_shape(
        containers=[DeviceRequest(0, 1, 400), DeviceRequest(1, 1, 300)],
        where=NodeFilter(selector=(("zone", "b"),)),
    ),
]


def target_workloads() -> st.SearchStrategy[TargetWorkload]:
    counts = st.dictionaries(st.sampled_from(PODS), st.integers(1, 50), min_size=1)
    return counts.map(target_workload_of)


def device(model: str) -> DeviceType:
    return DeviceType(model, USABLE_MIB[model], COMPUTE[model])


KINDS: list[tuple[DeviceType, ...]] = [
    (device(A100),) * 4,
    (device(A30),),
    (device(A100), device(A30)),
    (device(A30), device(A100), device(A30)),
]


def free_milli(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    amounts = st.one_of(st.sampled_from([0, 1000, 500, 190]), st.integers(0, 1000))
    return st.tuples(*[amounts] * count)


def pods() -> st.SearchStrategy[list[PodShape | None]]:
    """Pods one after the other; None = half of them leave."""
    return st.lists(st.one_of(st.sampled_from(PODS), st.none()), max_size=30)
