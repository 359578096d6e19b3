"""An array is charged as the driver lays it out: by rows, blocks and format, not by texels."""

from collections.abc import Callable

import pytest
from tests.native.container import Container
from tests.native.fake_gpu import FakeGPU

HERE = "tests.native.array_cases"
CAP_MIB, GRANULE_MIB = 1024, 2
FLOAT, UINT8, BC1, BC7, UNORM_INT8X4 = 0x20, 0x01, 0x91, 0x9D, 0xC2


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    return container(cap_mib=CAP_MIB)


@pytest.mark.parametrize(
    ("shape", "form", "channels"),
    [
        ((1, 65536, 0), UINT8, 1),  # a byte each, of which the driver makes rows of 512
        ((1, 0, 0), UINT8, 1),  # a byte, of which it makes 64 KiB
        ((3, 5000, 3), FLOAT, 4),
        ((1001, 1001, 0), BC1, 4),
        ((2001, 2001, 0), BC7, 4),
        ((1000, 1000, 0), UNORM_INT8X4, 4),
    ],
)
def test_arrays_end_at_the_cap_and_not_long_before(
    box: Container, shape: tuple[int, int, int], form: int, channels: int
) -> None:
    process = box.gpu.start_call(f"{HERE}:take_and_wait", *shape, form, channels, **box.environment)
    try:
        assert process.stdin and process.stdout and process.stdout.readline() == "ready\n"
        context = box.gpu.used_mib()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "full\n"
        used = box.gpu.used_mib() - context
        assert used <= CAP_MIB
        assert used > 0.9 * CAP_MIB, "nor is much of it kept back"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.alone
@pytest.mark.parametrize("levels", [0, 1, 9])
def test_every_format_costs_what_the_driver_takes(
    box: Container, gpu: FakeGPU, levels: int
) -> None:
    bare = gpu.call(f"{HERE}:of_every_format", levels)
    charged = box.call(f"{HERE}:of_every_format", levels)
    assert isinstance(charged, list) and len(charged) == len(bare) > 100
    for (form, shape, driver), (_, _, ledger) in zip(bare, charged, strict=True):
        assert driver <= ledger <= driver + GRANULE_MIB, (hex(form), shape)
