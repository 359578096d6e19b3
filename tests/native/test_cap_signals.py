"""What an agent tells of programs that once got past their caps, and of others, as a table."""

from pathlib import Path

import pytest
from tests.native.cap_signals import SCENES, Signals, signals
from tests.native.fake_gpu import FakeGPU

pytestmark = pytest.mark.library_first

# Charged, device, used; processes, foreign; layer, above its cap; busy, context.
EXPECTED = {
    "fills its cap": Signals(1004, 1004, 1004, 1, 0, "interposer", False, 0.0, 304),
    "fills its cap from a pool": Signals(1004, 1004, 1004, 1, 0, "interposer", False, 0.0, 304),
    "two processes": Signals(900, 900, 900, 2, 0, "interposer", False, 0.0, 304),
    "1 closes the driver and opens it again": Signals(
        1000, 1000, 1000, 1, 0, "interposer", False, 0.0, 512
    ),
    "2 RTLD_DEEPBIND": Signals(1004, 1004, 1004, 1, 0, "interposer", False, 0.0, 304),
    "2 dlmopen": Signals(1004, 1004, 1004, 1, 0, "interposer", False, 0.0, 304),
    "3 one of two without the library": Signals(
        400, 1100, 1100, 2, 0, "unprotected", False, 0.0, 304
    ),
    "4 modules with variables": Signals(906, 906, 906, 1, 0, "interposer", False, 0.0, 320),
    "5 contexts": Signals(900, 900, 900, 1, 0, "interposer", False, 0.0, 512),
    "6 exported, imported, released": Signals(
        1024, 1024, 1024, 2, 0, "interposer", False, 0.0, 512
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_the_agent_tells(gpu: FakeGPU, programs: Path, tmp_path: Path, name: str) -> None:
    assert signals(name, gpu, tmp_path) == EXPECTED[name]


def test_every_program_has_its_line() -> None:
    assert set(SCENES) == set(EXPECTED)
