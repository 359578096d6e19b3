"""The variables of modules and libraries are charged before they are loaded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.native.container import OUT_OF_MEMORY, Container
from tests.native.cuda import MIB, Cuda, Number
from tests.native.images import cubin, fatbin

CAP = 2048
PTX = b".version 8.0\n.target sm_80\n.visible .global .align 4 .b8 table[%d];\n\0"
IMAGES = {
    "ptx": PTX % (500 * MIB),
    "cubin": cubin({".text.k": 512, ".nv.global": 400 * MIB, ".nv.global.init": 100 * MIB}),
    "fatbin": fatbin((2, cubin({".nv.global": 500 * MIB})), (1, PTX % 9)),
    "compressed": fatbin((2, cubin({".nv.global": 500 * MIB})), compressed=True),
}
WAYS = ["cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoad", "cuModuleLoadFatBinary"]
WAYS += ["cuLibraryLoadData", "cuLibraryLoadFromFile"]


@pytest.fixture
def box(container: Callable[..., Container], tmp_path: Path) -> Container:
    for name, image in IMAGES.items():
        (tmp_path / name).write_bytes(image)
    return container(cap_mib=CAP)


def load(cuda: Cuda, way: str, path: str, out: Number) -> int:
    image: Any = Path(path).read_bytes()
    if way in ("cuModuleLoad", "cuLibraryLoadFromFile"):
        image = path.encode()
    more = {"cuModuleLoadDataEx": [0, None, None]}.get(way, [])
    if way.startswith("cuLibrary"):
        more = [None, None, 0, None, None, 0]
    return int(getattr(cuda, way)(out, image, *more))


def loaded(way: str, path: str) -> list[Any]:
    """Load an image until that is refused: how many, the answer, and what is free then; after one
    was unloaded, after all were.
    """
    cuda, handles = Cuda(), list[int]()
    answer, out = 0, Number()
    while len(handles) < 40 and not (answer := load(cuda, way, path, out)):
        handles.append(int(out))
    found = [len(handles), answer, cuda.free_mib()]
    unload = "cuLibraryUnload" if way.startswith("cuLibrary") else "cuModuleUnload"
    for handle in handles:
        cuda.ok(unload, handle)
    return [*found, cuda.free_mib()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["ptx", "cubin", "fatbin"])
def test_forty_modules_of_500_mib_do_not_get_past_the_cap(
    box: Container, tmp_path: Path, name: str, way: str
) -> None:
    assert box.call(f"{__name__}:loaded", way, str(tmp_path / name)) == [4, OUT_OF_MEMORY, 48, CAP]
    assert box.gpu.peak_mib() <= 300 + 4 * 502


@pytest.mark.alone  # what others take while a module is loaded is measured as well
@pytest.mark.parametrize("way", WAYS)
def test_an_image_that_is_compressed_is_measured_and_unloaded_again(
    box: Container, tmp_path: Path, way: str
) -> None:
    found = box.call(f"{__name__}:loaded", way, str(tmp_path / "compressed"))
    assert found == [4, OUT_OF_MEMORY, CAP - 4 * 502, CAP]
    assert box.gpu.peak_mib() <= 300 + 5 * 502, "the fifth is there for a moment"


def before_a_context(path: str) -> list[Any]:
    """Load libraries without a context, then make contexts; what is free all the while."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    library = Number()
    for _ in range(2):
        assert load(cuda, "cuLibraryLoadData", path, library) == 0
    first = cuda.get("cuCtxCreate_v2", 0, 0)
    found = [cuda.free_mib()]
    second = cuda.get("cuCtxCreate_v2", 0, 0)
    found.append(cuda.free_mib())
    cuda.ok("cuCtxDestroy_v2", first)
    cuda.ok("cuLibraryUnload", int(library))
    found.append(cuda.free_mib())
    cuda.ok("cuCtxDestroy_v2", second)
    answers = [load(cuda, "cuLibraryLoadData", path, library) for _ in range(4)]
    answers.append(cuda.cuCtxCreate_v2(Number(), 0, 0))
    cuda.ok("cuLibraryUnload", int(library))
    answers.append(cuda.cuCtxCreate_v2(Number(), 0, 0))
    return [*found, *answers, cuda.free_mib()]


def test_a_library_without_a_context_is_charged_with_the_next_one(
    box: Container, tmp_path: Path
) -> None:
    found = box.call(f"{__name__}:before_a_context", str(tmp_path / "cubin"))
    assert found == [1048, 1048, 2048, 0, 0, 0, 0, OUT_OF_MEMORY, 0, 48]


def with_their_context(path: str) -> list[float]:
    cuda = Cuda()
    other = cuda.get("cuCtxCreate_v2", 0, 0)
    for _ in range(2):
        assert load(cuda, "cuModuleLoadData", path, Number()) == 0
    found = [cuda.free_mib()]
    cuda.ok("cuCtxDestroy_v2", other)
    cuda.get("cuCtxCreate_v2", 0, 0)
    return [*found, cuda.free_mib()]


def test_modules_go_with_their_context(box: Container, tmp_path: Path) -> None:
    assert box.call(f"{__name__}:with_their_context", str(tmp_path / "ptx")) == [1048, 2048]


def odd_images() -> list[int]:
    cuda = Cuda()
    odd = [b"", b"image", b"\x7fELF", b"\x7fELF\x02" + b"\xff" * 80, IMAGES["cubin"][:200] + b"\0"]
    odd += [IMAGES["fatbin"][:20], IMAGES["fatbin"][:16] + b"\xff" * 80, b".global .b8 x[99" * 20]
    return [cuda.cuModuleLoadData(Number(), image + bytes(200)) for image in odd]


def test_images_that_are_none_are_the_drivers_affair(box: Container) -> None:
    bare = box.gpu.call(f"{__name__}:odd_images")
    assert box.call(f"{__name__}:odd_images") == bare
