"""The ledger in annotations: what is written is what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_scheduler.api.allocation import BadAllocationError, annotations, contexts, parse
from gpu_scheduler.api.names import ALLOCATION
from gpu_scheduler.core.model.decision import DeviceAllocation

shares = st.tuples(st.integers(1, 1000), st.integers(0, 200_000))
held = st.dictionaries(
    st.tuples(st.integers(0, 15), st.sampled_from(["GPU-a", "GPU-b", "3"])), shares, min_size=1
)


@given(held)
def test_what_is_written_is_what_is_read(shares_by_place):
    devices = {
        DeviceAllocation(c, device, *share) for (c, device), share in shares_by_place.items()
    }
    read = parse(annotations("node-1", devices)[ALLOCATION])
    assert read.node == "node-1"
    assert set(read.devices) == devices


def test_a_container_gets_its_devices_and_the_smallest_cap():
    written = annotations(
        "n", [DeviceAllocation(1, "GPU-a", 500, 20224), DeviceAllocation(1, "GPU-b", 500, 12000)]
    )
    assert written == {
        "gpu-scheduler.io/allocation": (
            '{"v":1,"n":"n","c":{"1":{"GPU-a":[500,20224],"GPU-b":[500,12000]}}}'
        ),
        "gpu-scheduler.io/c1-devices": "GPU-a,GPU-b",
        "gpu-scheduler.io/c1-memory-mib": "12000",
        "gpu-scheduler.io/c1-memory-bytes": str(12000 << 20),
    }


def test_a_container_is_told_the_most_that_a_context_takes_on_its_devices():
    devices = [
        DeviceAllocation(0, "GPU-a", 500, 1),
        DeviceAllocation(1, "GPU-a", 500, 1),
        DeviceAllocation(1, "GPU-b", 500, 1),
    ]
    assert contexts(devices, {"GPU-a": 304, "GPU-b": 400}) == {
        "gpu-scheduler.io/c0-context-mib": "304",
        "gpu-scheduler.io/c1-context-mib": "400",
    }


def test_where_one_of_its_devices_was_not_measured_a_container_is_told_nothing():
    devices = [
        DeviceAllocation(0, "GPU-b", 500, 1),
        DeviceAllocation(0, "GPU-a", 500, 1),
        DeviceAllocation(0, "GPU-c", 500, 1),
    ]
    assert contexts(devices, {"GPU-a": 304, "GPU-b": 400}) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"v":2,"n":"n","c":{}}',
        '{"v":1,"c":{}}',
        '{"v":1,"n":"n","c":{"x":{"GPU":[1,1]}}}',
        '{"v":1,"n":"n","c":{"0":{"GPU":[1]}}}',
        '{"v":1,"n":"n","c":{"0":{"GPU":[0,1]}}}',
        '{"v":1,"n":"n","c":{"0":{"GPU":[1001,1]}}}',
        '{"v":1,"n":"n","c":{"0":{"GPU":[1,-1]}}}',
        '{"v":1,"n":"n","c":{"0":{"GPU":[Infinity,1]}}}',
        "[" * 100_000,
    ],
)
def test_what_this_operator_did_not_write_is_refused(text):
    with pytest.raises(BadAllocationError):
        parse(text)
