"""Every way to get device memory ends at the cap, however the program found the function."""

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
from tests.native.container import OUT_OF_MEMORY, Container, Neighbour, seen
from tests.native.cuda import MIB

CAP_MIB, PIECE_MIB = 1024, 128
ROWS = (
    "alloc alloc_v1 pitch pitch_v1 managed small async async_ptsz async_stream pool pool_ptsz "
    "pool_managed vmm vmm_mapped vmm_exported vmm_duplicated vmm_imported vmm_bound array array_v1 "
    "array3d array3d_v1 mipmap graph graph_v1 graph_v2 graph_params graph_ptsz graph_node "
    "graph_inner graph_captured module library heap context context_v3 context_v4"
).split()


def ctypes_probe(rows_library: str, row: str, mib: int) -> list[int]:
    """What driverprobe does, with functions that ctypes found; run in the container."""
    driver = ctypes.CDLL("libcuda.so.1")
    rows: Any = ctypes.CDLL(rows_library)
    resolver = ctypes.CFUNCTYPE(
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64
    )

    @resolver
    def by_ctypes(symbol: bytes, _name: bytes, _version: int, _flags: int) -> int | None:
        return ctypes.cast(getattr(driver, symbol.decode()), ctypes.c_void_p).value

    assert rows.resolve_all(by_ctypes)
    context, answer = ctypes.c_void_p(), ctypes.c_int()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert driver.cuInit(0) == 0
    if not row.startswith("context"):
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert driver.cuCtxSetCurrent(context) == 0
    take = rows.take_until_refused
    take.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_void_p]
    take.restype = ctypes.c_long
    pieces = take(row.encode(), mib << 20, 8192, ctypes.byref(answer))
    assert driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return [pieces, answer.value, free.value, total.value]


@pytest.fixture
def box(container: Callable[..., Container]) -> Container:
    """A gigabyte."""
    return container(cap_mib=CAP_MIB)


def context_mib(row: str) -> str:
    """Contexts are charged only where they are the row: the rest is exact to the byte."""
    return str(PIECE_MIB if row.startswith("context") else 0)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("resolution", ["linked", "dlopen", "procaddress"])
def test_row_ends_at_the_cap(box: Container, resolution: str, row: str) -> None:
    found = box.probe(resolution, row, PIECE_MIB, GPUCAP_CONTEXT_MIB=context_mib(row))
    assert (found.pieces, found.answer) == (CAP_MIB // PIECE_MIB, OUT_OF_MEMORY)
    assert (found.free_mib, found.total_mib) == (0, CAP_MIB)


@pytest.mark.parametrize("row", ROWS)
def test_row_ends_at_the_cap_through_ctypes(box: Container, row: str) -> None:
    library = box.programs / "librows.so"
    result = box.call(
        f"{__name__}:ctypes_probe",
        str(library),
        row,
        PIECE_MIB,
        GPUCAP_CONTEXT_MIB=context_mib(row),
    )
    assert isinstance(result, list)
    found = seen(" ".join(map(str, result)))
    assert (found.pieces, found.answer) == (CAP_MIB // PIECE_MIB, OUT_OF_MEMORY)
    assert (found.free_mib, found.total_mib) == (0, CAP_MIB)


@pytest.mark.parametrize("row", ROWS)
def test_what_is_given_back_can_be_taken_again(box: Container, row: str) -> None:
    found = box.probe("linked", row, PIECE_MIB, "cycle", GPUCAP_CONTEXT_MIB=context_mib(row))
    assert found.pieces == CAP_MIB // PIECE_MIB


@pytest.mark.parametrize("kind", ["handle", "pool", "graph"])
def test_a_location_that_is_not_known_counts_as_a_device(box: Container, kind: str) -> None:
    assert box.call("tests.native.memory_cases:of_an_unknown_location", kind) == CAP_MIB // 64


def test_pinned_memory_and_hints_are_charged_to_nobody(box: Container) -> None:
    """Managed memory was, where it was allocated: moving it is free."""
    assert box.call("tests.native.memory_cases:host_memory")[-1] == 0
    found = box.call("tests.native.memory_cases:hints", True)
    assert (found["to the device"], found["taken"]) == (0, 0)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_graph_in_a_graph_counts_as_its_nodes(box: Container, depth: int) -> None:
    box.gpu.configure(context_mib=0)
    for mib, answer in ((CAP_MIB + 64, OUT_OF_MEMORY), (CAP_MIB, 0)):
        found = box.call("tests.native.memory_cases:graph_in_a_graph", mib, depth)
        assert found == [answer, answer]
    assert box.gpu.peak_mib() <= CAP_MIB


def test_a_pitch_is_above_the_cap_not_even_for_a_moment(box: Container) -> None:
    box.gpu.configure(context_mib=0, module_mib=0)
    rows = 4096 * MIB // 512
    assert box.call("tests.native.memory_cases:a_narrow_pitch", rows) == OUT_OF_MEMORY
    assert box.gpu.peak_mib() <= CAP_MIB
    assert box.call("tests.native.memory_cases:a_narrow_pitch", rows // 8) == 0
    assert box.gpu.peak_mib() >= CAP_MIB // 2


def test_without_the_library_the_rows_go_far_beyond_the_cap(box: Container) -> None:
    bare = box.gpu.run(box.probe_command("linked", "alloc", PIECE_MIB))
    assert seen(bare.stdout).pieces > 10 * CAP_MIB // PIECE_MIB


@pytest.mark.parametrize("row", ["alloc", "async", "vmm", "graph"])
def test_the_neighbour_goes_on(container: Callable[..., Container], row: str) -> None:
    greedy, neighbour = container(cap_mib=2048), container(cap_mib=4096)
    with greedy.hold(row, PIECE_MIB) as holder:
        assert holder.seen.answer == OUT_OF_MEMORY
        found = neighbour.probe("linked", row, PIECE_MIB)
        assert found.pieces == 4096 // PIECE_MIB
        assert (found.free_mib, found.total_mib) == (0, 4096)


def test_a_neighbour_that_is_refused_is_noticed(container: Callable[..., Container]) -> None:
    neighbour = Neighbour(container(cap_mib=Neighbour.SHARE_MIB - 8, context_mib=0))
    rounds, refused = neighbour.end()
    assert refused == rounds > 0
