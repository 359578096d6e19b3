"""The C parts, built once, and folders of pretended devices. Needs gcc and make, nothing else."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.native.build import NativeBuild, build
from tests.native.container import Container, Neighbour, build_programs
from tests.native.fake_gpu import FakeGPU, uuid_of


@pytest.fixture(autouse=True)
def first_to_be_preloaded(request: pytest.FixtureRequest, native: NativeBuild) -> None:
    """Skip a test marked ``library_first`` where a sanitizer's runtime has to be that."""
    if native.sanitizer and request.node.get_closest_marker("library_first"):
        pytest.skip("a sanitizer's runtime must be preloaded first")


@pytest.fixture(scope="session")
def native() -> NativeBuild:
    """The fake driver and libgpucap, built if out of date."""
    return build()


@pytest.fixture
def fake_gpu(native: NativeBuild, tmp_path: Path) -> Callable[..., FakeGPU]:
    """Make a folder of devices: ``fake_gpu(devices=2, total_mib=4096, memory_limits=1)``."""
    made = 0

    def make(
        *,
        devices: int = 1,
        total_mib: int = 40960,
        reserved_mib: int = 512,
        capability: str = "8.0",
        **options: object,
    ) -> FakeGPU:
        nonlocal made
        made += 1
        folder = tmp_path / f"gpu-{made}"
        return FakeGPU(folder, native, devices, total_mib, reserved_mib, options, capability)

    return make


@pytest.fixture
def gpu(fake_gpu: Callable[..., FakeGPU]) -> FakeGPU:
    """One device of 40 GiB."""
    return fake_gpu()


@pytest.fixture
def two_of_three(fake_gpu: Callable[..., FakeGPU], tmp_path: Path) -> tuple[FakeGPU, str]:
    """Three devices, and the folder of a container that was given the first and the third."""
    given = tmp_path / "dev"
    given.mkdir()
    for index in (0, 2):
        (given / uuid_of(index)).touch()
    return fake_gpu(devices=3), str(given)


@pytest.fixture(scope="session")
def programs(native: NativeBuild) -> Path:
    """The programs of tests/native/programs, built if out of date."""
    return build_programs(native)


@pytest.fixture
def container(
    gpu: FakeGPU, programs: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Container]]:
    """Make a container on the device: ``container(cap_mib=1024, context_mib=0)``.

    Beside them runs a neighbour, in a container of its own, which must get its whole share all the
    while; not where a test is marked ``alone``.
    """
    made = 0

    def make(**options: object) -> Container:
        nonlocal made
        made += 1
        return Container(gpu, tmp_path / f"container-{made}", **options)  # type: ignore[arg-type]

    if request.node.get_closest_marker("alone") or gpu.build.sanitizer:
        yield make
        return
    neighbour = Neighbour(make(cap_mib=Neighbour.SHARE_MIB, context_mib=0))
    yield make
    rounds, refused = neighbour.end()
    assert rounds > 0 and refused == 0, f"the neighbour was refused {refused} of {rounds} times"
