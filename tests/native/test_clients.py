"""Programs that people run, from their own packages, in a capped container beside a neighbour."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.native import clients
from tests.native.client_cases import CLIENTS, NO_PRIVATE_TABLES
from tests.native.clients import CAP_MIB, NEIGHBOURS_MIB, PIECE_MIB
from tests.native.container import Container
from tests.native.fake_gpu import FakeGPU
from tests.native.runtime_cases import OPENED

CONTEXT_MIB = 300  # of the pretended driver; two of them at a time
LOOK_ONLY = {"nvidia-ml-py", "gpustat", "nvitop"}


@pytest.fixture(scope="session")
def python() -> Path:
    return clients.interpreter()


@pytest.fixture
def box(gpu: FakeGPU, container: Callable[..., Container], tmp_path: Path) -> Iterator[Container]:
    made = container(cap_mib=CAP_MIB)
    with clients.neighbour(gpu, tmp_path / "neighbour"):
        yield made


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=pytest.mark.library_first if how == "dlmopen" else ())
        for how in OPENED
    ],
)
def test_the_runtime_ends_in_words_on_the_pretended_driver_however_it_is_opened(
    container: Callable[..., Container], python: Path, how: str
) -> None:
    """It asks for the driver's private tables, so that CuPy and PyTorch go no further than here."""
    script = str(clients.ROOT / "tests/native/runtime_cases.py")
    box = container(cap_mib=CAP_MIB)
    done = box.run([str(python), script, how])
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{NO_PRIVATE_TABLES}\n", "")
    assert box.gpu.run([str(python), script, how]).stdout == done.stdout, "as without the library"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_real_client_is_capped_exactly_and_told_so(
    box: Container, python: Path, client: str
) -> None:
    row = clients.look(box, python, client)
    assert row.total_mib == CAP_MIB
    if client in LOOK_ONLY:
        assert (row.pieces, row.free_mib) == (1, CAP_MIB - PIECE_MIB)
        assert (row.own, row.others) == (True, 0)  # the neighbour's is in another namespace
    else:
        assert (row.pieces, row.free_mib) == (CAP_MIB // PIECE_MIB, CAP_MIB)
        assert row.peak_mib == NEIGHBOURS_MIB + CAP_MIB + 2 * CONTEXT_MIB
    assert box.log() == []
