"""Memory pools: each of them is counted, however many there are."""

from collections.abc import Callable

import pytest
from tests.native.container import Container
from tests.native.fake_gpu import FakeGPU

CASES = "tests.native.pool_cases"
MEMORY = "tests.native.memory_cases"
CONTEXT_MIB = 300  # of the pretended driver
MOST_POOLS = 1024  # that the library knows at once


@pytest.mark.parametrize("pools", [300, MOST_POOLS + 10])
def test_what_pools_take_is_charged_or_refused(
    container: Callable[..., Container], pools: int
) -> None:
    box = container(cap_mib=40000)
    process = box.gpu.start_call(
        "tests.native.pool_cases:one_piece_of_each", pools, **box.environment
    )
    try:
        assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
        context = box.gpu.used_mib()
        process.stdin.write("\n")
        process.stdin.flush()
        taken = int(process.stdout.readline())
        assert taken == min(pools, MOST_POOLS)
        assert box.gpu.used_mib() - context == box.ledger().held_mib() >= taken
        assert bool(box.log()) is (taken < pools)
    finally:
        process.kill()
        process.communicate()


def test_idle_memory_of_a_pool_is_counted_on_once(container: Callable[..., Container]) -> None:
    """Six threads, of which four fit; and none of them is refused for what others did not need."""
    box = container(cap_mib=1024)
    box.gpu.configure(context_mib=CONTEXT_MIB, pool_delay_us=2000)
    assert box.call(f"{CASES}:take_at_once", 6, 20, 256) == [0, 4, 1024]
    assert box.gpu.peak_mib() <= 1024 + CONTEXT_MIB


def test_a_promised_part_of_a_chunk_keeps_the_chunk(container: Callable[..., Container]) -> None:
    """The driver takes a whole one again for it: nobody else can have the rest meanwhile."""
    box = container(cap_mib=1024)
    box.gpu.configure(context_mib=CONTEXT_MIB, pool_delay_us=500_000)
    assert box.call(f"{CASES}:shrink_while_one_counts_on_it", 20) == 0


def test_each_stream_gives_back_what_was_freed_in_it(container: Callable[..., Container]) -> None:
    assert container(cap_mib=1024).call(f"{CASES}:free_in_two_streams") == [768, 1024]


def test_a_reset_gives_back_what_pools_held(container: Callable[..., Container]) -> None:
    box = container(cap_mib=1024)
    assert box.call(f"{CASES}:reset_with_a_pool") == 1024


def test_exported_memory_counts_until_its_descriptors_are_closed(
    container: Callable[..., Container],
) -> None:
    box = container(cap_mib=1024)
    assert box.call(f"{CASES}:export_and_release", 128) == [8, 0, 896]
    assert box.gpu.peak_mib() <= 1024 + CONTEXT_MIB


DEVICE, HOST, NUMA, PART_OF_DEVICE = 1, 2, 3, 6
PINNED, MANAGED = 1, 2


@pytest.mark.parametrize("own", [True, False], ids=["the location's own", "made"])
@pytest.mark.parametrize(
    ("location", "number", "kind", "payer"),
    [
        (DEVICE, 0, PINNED, 0),
        (DEVICE, 1, PINNED, 1),
        (DEVICE, 1, MANAGED, 1),
        (PART_OF_DEVICE, 1 + (5 << 8), PINNED, 1),
        (HOST, 0, PINNED, None),
        (NUMA, 0, PINNED, None),
        (HOST, 0, MANAGED, 0),
        (NUMA, 0, MANAGED, 0),
    ],
)
def test_a_pool_is_charged_where_its_memory_is(
    container: Callable[..., Container],
    fake_gpu: Callable[..., FakeGPU],
    location: int,
    number: int,
    kind: int,
    payer: int | None,
    own: bool,
) -> None:
    """And managed memory by a device, for it moves there when it is used."""
    box = container(cap_mib=1024)
    box.gpu = fake_gpu(devices=2)
    chunk = 64  # in which the pools grow
    assert box.call(f"{MEMORY}:of_location", location, number, kind, int(own)) == {
        f"device {each}": 1024 - (chunk if each == payer else 0) for each in range(2)
    }
