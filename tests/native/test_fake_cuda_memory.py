"""The fake driver's memory: each way to allocate takes from the device and gives back to it."""

from collections.abc import Callable

import pytest
from tests.native.cuda import INVALID_DEVICE, INVALID_VALUE, SUCCESS
from tests.native.fake_gpu import FakeGPU
from tests.native.partner import Partner

HERE = "tests.native.memory_cases"


WAYS = [
    "sync",
    "sync_first_version",
    "pitch",
    "managed",
    "stream_ordered",
    "own_pool",
    "vmm",
    "array",
    "mipmapped_array",
    "graph",
]


@pytest.mark.parametrize("way", WAYS)
def test_an_allocation_takes_64_mib_and_its_free_gives_them_back(gpu: FakeGPU, way: str) -> None:
    assert gpu.call(f"{HERE}:takes_and_gives_back", way) == [64, 0]


@pytest.mark.parametrize("way", WAYS)
def test_a_device_that_is_full_is_out_of_memory(fake_gpu: Callable[..., FakeGPU], way: str) -> None:
    gpu = fake_gpu(total_mib=1024, reserved_mib=24, context_mib=40)
    assert gpu.call(f"{HERE}:until_out_of_memory", way) == 960 // 64


def test_small_allocations_share_granules(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:small_ones") == [2, 4, 2]


def test_device_memory_can_be_written_and_read(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:writes_and_reads") == "Device memory"


def test_a_pool_keeps_what_is_freed_until_it_synchronises_or_is_trimmed(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:pool_life") == {
        "allocated": [64, 40],
        "freed": [64, 0],
        "synchronised": 32,
        "trimmed": 0,
        "high": [64, 40],
        "set current": INVALID_VALUE,
        "high again": 0,
        "destroy default": INVALID_VALUE,
    }


def test_mapped_memory_goes_back_after_the_last_release_and_unmap(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:map_life") == [4, 4, 0]


def test_host_memory_costs_no_device_memory_and_sizes_are_whole_granules(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:vmm_rules") == [0, INVALID_VALUE, INVALID_VALUE]


def test_an_imported_handle_shows_the_same_bytes_and_costs_nothing(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:shared_handle") == [0, "seen"]


def test_a_multicast_object_costs_nothing_beyond_what_is_bound(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:multicast") == 2


ALREADY_REGISTERED, NOT_REGISTERED = 712, 713


def test_registered_memory_is_the_machines_own_and_registered_once(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:host_memory") == [0, ALREADY_REGISTERED, 0, 0, NOT_REGISTERED, 0]


GOOD_HINTS = ["to the device", "by thread", "to the machine", "to a location", "advice"]
GOOD_HINTS += ["advice at a location"]


@pytest.mark.parametrize("managed", [True, False])
def test_hints_are_for_managed_memory_and_take_nothing(gpu: FakeGPU, managed: bool) -> None:
    found = gpu.call(f"{HERE}:hints", managed)
    assert {name: found[name] for name in GOOD_HINTS} == dict.fromkeys(
        GOOD_HINTS, SUCCESS if managed else INVALID_VALUE
    )
    assert found["to no device"] == (INVALID_DEVICE if managed else INVALID_VALUE)
    assert found["too much"] == found["no advice"] == INVALID_VALUE
    assert found["taken"] == 0


def test_an_array_costs_more_than_its_shape_and_only_a_deferred_one_tells(gpu: FakeGPU) -> None:
    cost, refused, told, cost_of_deferred = gpu.call(f"{HERE}:array_requirements")
    assert (cost, refused, told, cost_of_deferred) == (0.5, INVALID_VALUE, 0.5, 0)


def test_a_graph_takes_memory_at_its_launch_and_keeps_it_until_the_pool_is_trimmed(
    gpu: FakeGPU,
) -> None:
    assert gpu.call(f"{HERE}:graph_life") == {
        "added": 0,
        "launched": 16,
        "again": INVALID_VALUE,
        "freed": 16,
        "relaunched": 16,
        "reserved": 16,
        "trimmed": 0,
    }


def test_a_captured_allocation_is_a_node_of_the_graph(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:captured_and_launched") == [0, 16]


def test_memory_of_another_process_costs_nothing_here(gpu: FakeGPU) -> None:
    with Partner(gpu) as maker, Partner(gpu) as other:
        handle = maker.ipc_handle(maker.allocate(64))
        before = other.free_mib()
        answer, pointer = other.ipc_open(handle)
        assert (answer, other.free_mib()) == (SUCCESS, before)
        assert other.free_answer(pointer) == INVALID_VALUE
        other.ipc_close(pointer)


def test_external_memory_costs_nothing_here(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:external_memory") == [0, 0]


def test_modules_and_contexts_cost_and_the_last_context_takes_all_with_it(gpu: FakeGPU) -> None:
    assert gpu.call(f"{HERE}:modules_and_contexts") == {
        "loaded": 4,
        "unloaded": 0,
        "second context": 300,
        "reset": 0,
    }
