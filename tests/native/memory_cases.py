"""What `test_fake_cuda_memory` lets processes of their own do, and every way to allocate."""

import ctypes
from collections.abc import Callable
from typing import Any

from tests.native.cuda import INVALID_VALUE, MIB, OUT_OF_MEMORY, SUCCESS, Cuda, Number
from tests.native.cuda_layouts import (
    AccessDesc,
    AllocationProp,
    AllocNodeParams,
    ArrayDescriptor,
    ChildParams,
    MulticastProp,
    PoolProps,
    Requirements,
)

MANAGED_GLOBAL, AUTO_FREE, DEFERRED_MAPPING = 1, 1, 0x80


UNSIGNED_INT8 = 1


RELEASE_THRESHOLD, RESERVED_CURRENT, RESERVED_HIGH, USED_CURRENT, USED_HIGH = 4, 5, 6, 7, 8


def pinned(*, location: int = 1, device: int = 0, handle_types: int = 0) -> Any:
    return ctypes.byref(AllocationProp(1, handle_types, location, device))


def shape(width: int, height: int = 0, depth: int = 0, flags: int = 0) -> Any:
    return ctypes.byref(ArrayDescriptor(width, height, depth, UNSIGNED_INT8, 1, flags))


def alloc_node(cuda: Cuda, graph: int, mib: int) -> int:
    params = AllocNodeParams(PoolProps(1, 0, 1, 0), bytes=mib * MIB)
    cuda.ok("cuGraphAddMemAllocNode", Number(), graph, None, 0, ctypes.byref(params))
    return int(params.pointer)


# Each takes 64 MiB of the device and returns what gives them back.
def sync(cuda: Cuda) -> Callable[[], int]:
    pointer = cuda.allocate(64)
    return lambda: cuda.cuMemFree_v2(pointer)


def sync_first_version(cuda: Cuda) -> Callable[[], int]:
    pointer = cuda.get("cuMemAlloc", 64 * MIB)
    assert 0 < pointer < 1 << 32, "its pointers have 32 bits"
    return lambda: cuda.cuMemFree(pointer)


def pitch(cuda: Cuda) -> Callable[[], int]:
    pointer, row = Number(), Number()
    cuda.ok("cuMemAllocPitch_v2", pointer, row, 1000, 65536, 4)
    assert int(row) == 1024
    return lambda: cuda.cuMemFree_v2(int(pointer))


def managed(cuda: Cuda) -> Callable[[], int]:
    pointer = cuda.get("cuMemAllocManaged", 64 * MIB, MANAGED_GLOBAL)
    return lambda: cuda.cuMemFree_v2(pointer)


def stream_ordered(cuda: Cuda) -> Callable[[], int]:
    pointer = cuda.get("cuMemAllocAsync", 64 * MIB, 0)

    def free() -> int:
        cuda.ok("cuMemFreeAsync", pointer, 0)
        return cuda.cuCtxSynchronize()

    return free


def own_pool(cuda: Cuda) -> Callable[[], int]:
    pool = cuda.get("cuMemPoolCreate", ctypes.byref(PoolProps(1, 0, 1, 0)))
    pointer = cuda.get("cuMemAllocFromPoolAsync", 64 * MIB, pool, 0)

    def free() -> int:
        cuda.ok("cuMemFreeAsync", pointer, 0)
        return cuda.cuMemPoolDestroy(pool)

    return free


def vmm(cuda: Cuda) -> Callable[[], int]:
    handle = cuda.get("cuMemCreate", 64 * MIB, pinned(), 0)
    return lambda: cuda.cuMemRelease(handle)


def array(cuda: Cuda) -> Callable[[], int]:
    made = cuda.get("cuArray3DCreate_v2", shape(1024, 1024, 64))
    return lambda: cuda.cuArrayDestroy(made)


def mipmapped_array(cuda: Cuda) -> Callable[[], int]:
    made = cuda.get("cuMipmappedArrayCreate", shape(8192, 8192), 1)
    return lambda: cuda.cuMipmappedArrayDestroy(made)


def graph(cuda: Cuda) -> Callable[[], int]:
    made = cuda.get("cuGraphCreate", 0)
    pointer = alloc_node(cuda, made, 64)
    ready = cuda.get("cuGraphInstantiateWithFlags", made, 0)
    cuda.ok("cuGraphLaunch", ready, 0)

    def free() -> int:
        cuda.ok("cuMemFree_v2", pointer)
        cuda.ok("cuGraphExecDestroy", ready)
        cuda.ok("cuGraphDestroy", made)
        return cuda.cuDeviceGraphMemTrim(0)

    return free


def takes_and_gives_back(name: str) -> list[float]:
    cuda = Cuda()
    before = cuda.free_mib()
    give_back = globals()[name](cuda)
    held = cuda.free_mib()
    assert give_back() == SUCCESS
    return [before - held, before - cuda.free_mib()]


def until_out_of_memory(name: str) -> int:
    cuda = Cuda()
    many = 0
    while True:
        try:
            globals()[name](cuda)
        except AssertionError as error:
            assert str(error).endswith(f"CUresult {OUT_OF_MEMORY}"), error
            return many
        many += 1
        assert many < 100


def small_ones() -> list[float]:
    cuda = Cuda()
    before = cuda.free_mib()
    first = cuda.allocate(0.25)
    others = [cuda.allocate(0.25) for _ in range(7)]
    eight = before - cuda.free_mib()
    cuda.allocate(0.25)
    nine = before - cuda.free_mib()
    for pointer in (first, *others):
        cuda.ok("cuMemFree_v2", pointer)
    return [eight, nine, before - cuda.free_mib()]


def writes_and_reads() -> str:
    cuda = Cuda()
    first, second = cuda.allocate(4), cuda.allocate(4)
    cuda.ok("cuMemcpyHtoD_v2", first + 100, b"device memory", 13)
    cuda.ok("cuMemcpyDtoD_v2", second, first + 100, 13)
    cuda.ok("cuMemsetD8_v2", second, ord("D"), 1)
    back = ctypes.create_string_buffer(13)
    cuda.ok("cuMemcpyDtoH_v2", back, second, 13)
    assert cuda.cuMemcpyDtoH_v2(back, second + 4 * MIB - 5, 13) == INVALID_VALUE
    return back.value.decode()


def pool_life() -> dict[str, Any]:
    cuda = Cuda()
    pool = cuda.get("cuDeviceGetDefaultMemPool", 0)

    def figure(attribute: int) -> float:
        value = Number()
        cuda.ok("cuMemPoolGetAttribute", pool, attribute, value)
        return int(value) / MIB

    seen: dict[str, Any] = {}
    pointer = cuda.get("cuMemAllocAsync", 40 * MIB, 0)
    seen["allocated"] = [figure(RESERVED_CURRENT), figure(USED_CURRENT)]
    threshold = Number(32 * MIB)
    cuda.ok("cuMemPoolSetAttribute", pool, RELEASE_THRESHOLD, threshold)
    cuda.ok("cuMemFreeAsync", pointer, 0)
    seen["freed"] = [figure(RESERVED_CURRENT), figure(USED_CURRENT)]
    cuda.ok("cuStreamSynchronize", 0)
    seen["synchronised"] = figure(RESERVED_CURRENT)
    cuda.ok("cuMemPoolTrimTo", pool, 0)
    seen["trimmed"] = figure(RESERVED_CURRENT)
    seen["high"] = [figure(RESERVED_HIGH), figure(USED_HIGH)]
    seen["set current"] = cuda.cuMemPoolSetAttribute(pool, RESERVED_CURRENT, Number(0))
    cuda.ok("cuMemPoolSetAttribute", pool, RESERVED_HIGH, Number(0))
    seen["high again"] = figure(RESERVED_HIGH)
    seen["destroy default"] = cuda.cuMemPoolDestroy(pool)
    return seen


def map_life() -> list[float]:
    cuda = Cuda()
    before = cuda.free_mib()
    handle = cuda.get("cuMemCreate", 4 * MIB, pinned(), 0)
    address = cuda.get("cuMemAddressReserve", 8 * MIB, 0, 0, 0)
    cuda.ok("cuMemMap", address + 4 * MIB, 4 * MIB, 0, handle, 0)
    cuda.ok("cuMemSetAccess", address + 4 * MIB, 4 * MIB, ctypes.byref(AccessDesc(1, 0, 3)), 1)
    cuda.ok("cuMemsetD8_v2", address + 4 * MIB, 1, 4 * MIB)
    assert cuda.cuMemsetD8_v2(address, 1, 1) == INVALID_VALUE, "not mapped"
    again = cuda.get("cuMemRetainAllocationHandle", address + 5 * MIB)
    seen = []
    for step, argument in (("cuMemRelease", handle), ("cuMemRelease", again)):
        cuda.ok(step, argument)
        seen.append(before - cuda.free_mib())
    assert cuda.cuMemAddressFree(address, 8 * MIB) == INVALID_VALUE, "still mapped"
    cuda.ok("cuMemUnmap", address + 4 * MIB, 4 * MIB)
    cuda.ok("cuMemAddressFree", address, 8 * MIB)
    return [*seen, before - cuda.free_mib()]


def vmm_rules() -> list[float]:
    cuda = Cuda()
    before = cuda.free_mib()
    cuda.ok("cuMemCreate", Number(), 64 * MIB, pinned(location=3), 0)
    host = before - cuda.free_mib()
    return [host, cuda.cuMemCreate(Number(), MIB, pinned(), 0), cuda.cuMemRelease(1234)]


def shared_handle() -> list[Any]:
    cuda = Cuda()
    handle = cuda.get("cuMemCreate", 2 * MIB, pinned(handle_types=1), 0)
    held = cuda.free_mib()
    file = ctypes.c_int()
    cuda.ok("cuMemExportToShareableHandle", ctypes.byref(file), handle, 1, 0)
    other = cuda.get("cuMemImportFromShareableHandle", file.value, 1)
    address = cuda.get("cuMemAddressReserve", 4 * MIB, 0, 0, 0)
    for offset, each in ((0, handle), (2 * MIB, other)):
        cuda.ok("cuMemMap", address + offset, 2 * MIB, 0, each, 0)
    cuda.ok("cuMemSetAccess", address, 4 * MIB, ctypes.byref(AccessDesc(1, 0, 3)), 1)
    cuda.ok("cuMemcpyHtoD_v2", address, b"seen", 4)
    back = ctypes.create_string_buffer(5)
    cuda.ok("cuMemcpyDtoH_v2", back, address + 2 * MIB, 4)
    return [held - cuda.free_mib(), back.value.decode()]


def multicast() -> float:
    cuda = Cuda()
    before = cuda.free_mib()
    made = cuda.get("cuMulticastCreate", ctypes.byref(MulticastProp(1, 64 * MIB)))
    cuda.ok("cuMulticastAddDevice", made, 0)
    handle = cuda.get("cuMemCreate", 2 * MIB, pinned(), 0)
    cuda.ok("cuMulticastBindMem", made, 0, handle, 0, 2 * MIB, 0)
    return before - cuda.free_mib()


def array_requirements() -> list[Any]:
    cuda = Cuda()
    before = cuda.free_mib()
    needs = Requirements()
    plain = cuda.get("cuArray3DCreate_v2", shape(100, 1024))
    cost = before - cuda.free_mib()
    refused = cuda.cuArrayGetMemoryRequirements(ctypes.byref(needs), plain, 0)
    deferred = cuda.get("cuArray3DCreate_v2", shape(100, 1024, 0, DEFERRED_MAPPING))
    cuda.ok("cuArrayGetMemoryRequirements", ctypes.byref(needs), deferred, 0)
    return [cost, refused, needs.size / MIB, before - cuda.free_mib() - cost]


def graph_life() -> dict[str, Any]:
    cuda = Cuda()
    before = cuda.free_mib()
    made = cuda.get("cuGraphCreate", 0)
    pointer = alloc_node(cuda, made, 16)
    seen: dict[str, Any] = {"added": before - cuda.free_mib()}
    ready = cuda.get("cuGraphInstantiateWithFlags", made, 0)
    cuda.ok("cuGraphLaunch", ready, 0)
    seen["launched"] = before - cuda.free_mib()
    seen["again"] = cuda.cuGraphLaunch(ready, 0)
    cuda.ok("cuMemsetD8_v2", pointer, 1, 16 * MIB)
    cuda.ok("cuMemFreeAsync", pointer, 0)
    seen["freed"] = before - cuda.free_mib()
    cuda.ok("cuGraphLaunch", ready, 0)
    seen["relaunched"] = before - cuda.free_mib()
    automatic = cuda.get("cuGraphInstantiateWithFlags", made, AUTO_FREE)
    cuda.ok("cuGraphLaunch", automatic, 0)
    reserved = Number()
    cuda.ok("cuDeviceGetGraphMemAttribute", 0, 2, reserved)
    seen["reserved"] = int(reserved) / MIB
    cuda.ok("cuMemFree_v2", pointer)
    cuda.ok("cuDeviceGraphMemTrim", 0)
    seen["trimmed"] = before - cuda.free_mib()
    return seen


def captured_and_launched() -> list[float]:
    cuda = Cuda()
    before = cuda.free_mib()
    stream, made = cuda.get("cuStreamCreate", 0), Number()
    cuda.ok("cuStreamBeginCapture_v2", stream, 0)
    pointer = cuda.get("cuMemAllocAsync", 16 * MIB, stream)
    cuda.ok("cuMemFreeAsync", pointer, stream)
    cuda.ok("cuStreamEndCapture", stream, made)
    after_capture = before - cuda.free_mib()
    cuda.ok("cuGraphLaunch", cuda.get("cuGraphInstantiateWithFlags", int(made), 0), stream)
    return [after_capture, before - cuda.free_mib()]


def external_memory() -> list[float]:
    class HandleDesc(ctypes.Structure):
        _fields_ = [
            ("type", ctypes.c_int),
            ("handle", Number * 2),
            ("size", Number),
            ("x", Number * 9),
        ]

    class BufferDesc(ctypes.Structure):
        _fields_ = [("offset", Number), ("size", Number), ("rest", Number * 9)]

    cuda = Cuda()
    before = cuda.free_mib()
    memory = cuda.get("cuImportExternalMemory", ctypes.byref(HandleDesc(1, size=Number(64 * MIB))))
    pointer = cuda.get(
        "cuExternalMemoryGetMappedBuffer", memory, ctypes.byref(BufferDesc(size=Number(64 * MIB)))
    )
    cost = before - cuda.free_mib()
    cuda.ok("cuMemFree_v2", pointer)
    cuda.ok("cuDestroyExternalMemory", memory)
    return [cost, before - cuda.free_mib()]


def modules_and_contexts() -> dict[str, float]:
    cuda = Cuda(context=False)
    cuda.ok("cuInit", 0)
    primary = cuda.get("cuDevicePrimaryCtxRetain", 0)
    cuda.ok("cuCtxSetCurrent", primary)
    before = cuda.free_mib()
    module = cuda.get("cuModuleLoadData", b"image")
    library = cuda.get("cuLibraryLoadData", b"image", None, None, 0, None, None, 0)
    seen = {"loaded": before - cuda.free_mib()}
    cuda.ok("cuModuleUnload", module)
    cuda.ok("cuLibraryUnload", library)
    seen["unloaded"] = before - cuda.free_mib()
    own = cuda.get("cuCtxCreate_v2", 0, 0)
    seen["second context"] = before - cuda.free_mib()
    cuda.ok("cuCtxDestroy_v2", own)
    cuda.allocate(64)
    cuda.ok("cuDevicePrimaryCtxReset_v2", 0)
    cuda.ok("cuCtxCreate_v2", Number(), 0, 0)
    seen["reset"] = before - cuda.free_mib()
    return seen


def a_narrow_pitch(rows: int) -> int:
    """What cuMemAllocPitch answers for rows of one byte, which the driver makes 512."""
    return Cuda().cuMemAllocPitch_v2(Number(), Number(), 1, rows, 4)


NEWER_LOCATION = 64  # of a device, by a name that libgpucap does not know


def of_an_unknown_location(kind: str) -> int:
    """Pieces of 64 MiB that can be had at such a location."""
    cuda, taken = Cuda(), 0
    pool = None
    if kind == "pool":
        pool = cuda.get("cuMemPoolCreate", ctypes.byref(PoolProps(1, 0, NEWER_LOCATION, 0)))
    while taken < 64:
        if kind == "handle":
            answer = cuda.cuMemCreate(Number(), 64 * MIB, pinned(location=NEWER_LOCATION), 0)
        elif kind == "pool":
            answer = cuda.cuMemAllocFromPoolAsync(Number(), 64 * MIB, pool, 0)
        else:
            made = cuda.get("cuGraphCreate", 0)
            params = AllocNodeParams(PoolProps(1, 0, NEWER_LOCATION, 0), bytes=64 * MIB)
            cuda.ok("cuGraphAddMemAllocNode", Number(), made, None, 0, ctypes.byref(params))
            ready = Number()
            answer = cuda.cuGraphInstantiateWithFlags(ctypes.byref(ready), made, 0)
            answer = answer or cuda.cuGraphLaunch(int(ready), 0)
        if answer:
            assert answer == OUT_OF_MEMORY
            break
        taken += 1
    return taken


def host_memory() -> list[Any]:
    """Answers for memory that is registered twice, let go twice; what of the device it took."""
    cuda, memory = Cuda(), ctypes.create_string_buffer(64 * MIB)
    before, at = cuda.free_mib(), ctypes.addressof(memory)
    answers = [
        cuda.cuMemHostRegister_v2(at, 64 * MIB, 2),
        cuda.cuMemHostRegister(at + MIB, MIB, 0),
        cuda.cuMemHostGetDevicePointer_v2(Number(), at, 0),
    ]
    taken = before - cuda.free_mib()
    return [*answers, cuda.cuMemHostUnregister(at), cuda.cuMemHostUnregister(at), taken]


def hints(managed: bool) -> dict[str, Any]:
    """Answers to advice and prefetching, and what both took of the device."""
    cuda, mib = Cuda(), 64 * MIB
    if managed:
        pointer = cuda.get("cuMemAllocManaged", mib, MANAGED_GLOBAL)
    else:
        pointer = cuda.allocate(64)
    before = cuda.free_mib()

    class Location(ctypes.Structure):
        _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]

    def at(kind: int, number: int) -> Location:
        return Location(kind, number)

    driver, where = cuda.library, ctypes.c_uint64(pointer)
    size, null = ctypes.c_size_t(mib), ctypes.c_void_p()
    answers = {
        "to the device": cuda.cuMemPrefetchAsync(pointer, mib, 0, 0),
        "by thread": cuda.cuMemPrefetchAsync_ptsz(pointer, mib, 0, 0),
        "to the machine": cuda.cuMemPrefetchAsync(pointer, mib, -1, 0),
        "to a location": driver.cuMemPrefetchAsync_v2(where, size, at(1, 0), 0, null),
        "to no device": driver.cuMemPrefetchAsync_v2_ptsz(where, size, at(1, 7), 0, null),
        "too much": cuda.cuMemPrefetchAsync(pointer, 2 * mib, 0, 0),
        "advice": cuda.cuMemAdvise(pointer, mib, 3, 0),
        "advice at a location": driver.cuMemAdvise_v2(where, size, 3, at(2, 0)),
        "no advice": cuda.cuMemAdvise(pointer, mib, 9, 0),
    }
    return answers | {"taken": before - cuda.free_mib()}


def graph_in_a_graph(mib: int, depth: int) -> list[int]:
    """What instantiating and launching answer for a graph with allocations so far within."""
    cuda = Cuda()
    made = cuda.get("cuGraphCreate", 0)
    for _ in range(mib // 64):
        alloc_node(cuda, made, 64)
    for _ in range(depth):
        outer = cuda.get("cuGraphCreate", 0)
        child = ChildParams(4, graph=made, ownership=1)
        cuda.ok("cuGraphAddNode", Number(), outer, None, 0, ctypes.byref(child))
        made = outer
    ready = Number()
    answer = cuda.cuGraphInstantiateWithFlags(ready, made, 0)
    return [answer, answer or cuda.cuGraphLaunch(int(ready), 0)]


def of_location(location: int, number: int, kind: int, own: int) -> dict[str, float]:
    """Take 64 MiB from a pool there, one that is the location's own or made; what is free of each
    device then.
    """
    cuda = Cuda()
    if own:
        where = (ctypes.c_int * 2)(location, number)
        pool = cuda.get("cuMemGetDefaultMemPool", where, kind)
    else:
        pool = cuda.get("cuMemPoolCreate", ctypes.byref(PoolProps(kind, 0, location, number)))
    cuda.ok("cuMemAllocFromPoolAsync", Number(), 64 * MIB, pool, 0)
    seen = {"device 0": cuda.free_mib()}
    cuda.ok("cuCtxCreate_v2", Number(), 0, 1)
    return seen | {"device 1": cuda.free_mib()}
