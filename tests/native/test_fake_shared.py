"""The fake driver's memory that several processes hold, and what modules declare.

Each rule is of NVIDIA's CUDA driver API: the section is named where the pretended driver does it.
"""

import os
import struct
from pathlib import Path

import pytest
from tests.native.cuda import INVALID_HANDLE, INVALID_VALUE, MIB, Cuda
from tests.native.fake_gpu import FakeGPU
from tests.native.images import cubin, fatbin
from tests.native.partner import Partner, hand_over

CONTEXT = 300


def figure(gpu: FakeGPU, partner: Partner) -> float:
    """What the driver says a process holds beside its context."""
    (found,) = [each for each in gpu.state()["processes"] if each["pid"] == partner.pid]
    held: int = sum(found["bytes"][gpu.uuids[0]].values())
    return held / MIB - CONTEXT


def test_exported_memory_stays_until_the_last_descriptor_is_closed(gpu: FakeGPU) -> None:
    with Partner(gpu) as maker:
        handle = maker.create(64)
        first = maker.export(handle)
        second = maker.dup(first)
        maker.release(handle)
        maker.close(first)
        assert gpu.used_mib() == CONTEXT + 64, "its duplicate is open"
        child = maker.fork()
        maker.close(second)
        assert gpu.used_mib() == CONTEXT + 64, "and a child has it"
        assert figure(gpu, maker) == 64
        maker.end_child(child)
        assert gpu.used_mib() == CONTEXT


def test_a_descriptor_on_its_way_keeps_the_memory(gpu: FakeGPU, tmp_path: Path) -> None:
    with Partner(gpu) as maker, Partner(gpu) as other:
        other.listen(str(tmp_path))
        handle = maker.create(64)
        file = maker.export(handle)
        maker.send(file, str(tmp_path))
        maker.release(handle)
        maker.close(file)
        assert gpu.used_mib() == 2 * CONTEXT + 64
        other.hang_up()
        assert gpu.used_mib() == 2 * CONTEXT


def test_imported_memory_stays_until_the_last_importer_lets_go(gpu: FakeGPU) -> None:
    with Partner(gpu) as maker, Partner(gpu) as importer:
        handle = maker.create(64)
        file = hand_over(maker, maker.export(handle), importer)
        imported = importer.import_(file)
        importer.close(file)
        assert (figure(gpu, maker), figure(gpu, importer)) == (64, 0), "its maker has it"
        maker.release(handle)
        assert (figure(gpu, maker), figure(gpu, importer)) == (0, 64)
        at = importer.map(imported, 64)
        importer.release(imported)
        assert gpu.used_mib() == 2 * CONTEXT + 64, "it is mapped"
        importer.unmap(at, 64)
        assert gpu.used_mib() == 2 * CONTEXT


@pytest.mark.parametrize("imports", [True, False])
def test_memory_outlives_its_maker(gpu: FakeGPU, imports: bool) -> None:
    with Partner(gpu) as maker, Partner(gpu) as other:
        file = hand_over(maker, maker.export(maker.create(64)), other)
        if imports:
            other.import_(file)
        maker.kill()
        assert gpu.used_mib() == CONTEXT + 64
        assert figure(gpu, other) == (64 if imports else 0)
        if not imports:
            other.release(other.import_(file))
            other.close(file)
            assert gpu.used_mib() == CONTEXT
        other.kill()
        assert gpu.used_mib() == 0


def test_a_descriptor_of_something_else_is_no_memory(gpu: FakeGPU) -> None:
    with Partner(gpu) as other:
        assert other.import_answer(0) == INVALID_VALUE


def test_memory_opened_by_an_ipc_handle_stays_until_it_is_closed(gpu: FakeGPU) -> None:
    with Partner(gpu) as maker, Partner(gpu) as importer:
        pointer = maker.allocate(64)
        handle = maker.ipc_handle(pointer)
        answer, first = importer.ipc_open(handle)
        _, second = importer.ipc_open(handle)
        assert answer == 0
        assert (figure(gpu, maker), figure(gpu, importer)) == (64, 0)
        maker.free(pointer)
        assert (figure(gpu, maker), figure(gpu, importer)) == (0, 64)
        importer.ipc_close(first)
        assert gpu.used_mib() == 2 * CONTEXT + 64
        importer.ipc_close(second)
        assert gpu.used_mib() == 2 * CONTEXT
        assert importer.ipc_open(handle)[0] == INVALID_HANDLE, "it is gone"


def test_it_goes_with_the_context_that_has_it_open(gpu: FakeGPU) -> None:
    with Partner(gpu) as maker, Partner(gpu) as importer:
        context = importer.new_context()
        assert importer.ipc_open(maker.ipc_handle(maker.allocate(0.5)))[0] == 0
        maker.kill()
        assert gpu.used_mib() == 2 * CONTEXT + 2, "a small piece has its granule"
        importer.destroy_context(context)
        assert gpu.used_mib() == CONTEXT


def loads(kind: str, path: str) -> dict[str, float]:
    """Load an image as a module, and as a library before there is a context."""
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    image = Path(path).read_bytes()
    library = cuda.get("cuLibraryLoadData", image, None, None, 0, None, None, 0)
    context = cuda.get("cuCtxCreate_v2", 0, 0)
    before = cuda.free_mib()
    loads = {"data": ("cuModuleLoadData", image), "file": ("cuModuleLoad", path.encode())}
    name, argument = loads[kind]
    module = cuda.get(name, argument)
    seen = {"loaded": before - cuda.free_mib()}
    cuda.ok("cuModuleUnload", module)
    seen["unloaded"] = before - cuda.free_mib()
    kernel = cuda.get("cuLibraryGetKernel", library, b"k")
    seen["library"] = before - cuda.free_mib()
    cuda.get("cuKernelGetFunction", kernel)
    seen["used"] = before - cuda.free_mib()
    other = cuda.get("cuCtxCreate_v2", 0, 0)
    cuda.get(name, argument)
    cuda.ok("cuCtxDestroy_v2", other)
    cuda.ok("cuCtxSetCurrent", context)
    seen["with its context"] = before - cuda.free_mib()
    return seen


PTX = """.version 8.0
.target sm_80
.visible .global .align 4 .b8 table[{bytes}];
.extern .global .align 4 .b8 elsewhere[];
.visible .entry k(.param .u64 .ptr .global .align 4 p) {{
    ld.global.u32 %r1, [table]; cvta.to.global.u64 %rd1, %rd2; ret; }}
"""
IMAGES = {
    "ptx": PTX.format(bytes=100 * MIB).encode() + b"\0",
    "ptx of words": b".version 8.0\n.global .f32 a[1024][25600];\0",
    "cubin": cubin({".nv.global": 60 * MIB, ".nv.global.init": 40 * MIB, ".nv.shared.k": MIB}),
    "fatbin": fatbin((2, cubin({".nv.global": 100 * MIB})), (1, PTX.format(bytes=9).encode())),
}


@pytest.mark.parametrize("kind", ["data", "file"])
@pytest.mark.parametrize("name", IMAGES)
def test_a_module_costs_what_its_image_declares(
    gpu: FakeGPU, tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / "image").write_bytes(IMAGES[name])
    found = gpu.call(f"{__name__}:loads", kind, str(tmp_path / "image"))
    assert found == {
        "loaded": 102,
        "unloaded": 0,
        "library": 0,
        "used": 102,
        "with its context": 102,
    }


@pytest.mark.parametrize("length", [0, 3, 4, 16, 63, 64, 200])
@pytest.mark.parametrize("name", ["cubin", "fatbin"])
def test_a_broken_image_costs_no_more(gpu: FakeGPU, tmp_path: Path, name: str, length: int) -> None:
    broken = IMAGES[name][:length] + os.urandom(8) + struct.pack("<Q", 1 << 62) + b"\0"
    (tmp_path / "image").write_bytes(broken)
    found = gpu.call(f"{__name__}:loads", "file", str(tmp_path / "image"))
    assert found["loaded"] == 2
