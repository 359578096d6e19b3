"""What `test_gpucap_bound` lets processes do: bind memory and release its handle."""

import ctypes
from collections.abc import Callable

from tests.native.cuda import MIB, OUT_OF_MEMORY, Cuda, Number
from tests.native.cuda_layouts import (
    AccessDesc,
    AllocationProp,
    ArrayDescriptor,
    ArrayMap,
    EndpointProp,
    MulticastProp,
)

PIECE_MIB, MOST = 64, 64
SPARSE, MAP, UNMAP = 0x40, 1, 2

Bind = Callable[[Cuda, int, int], None]  # with the handle, and where in what it is bound to


def memory(cuda: Cuda) -> int | None:
    """A handle; None where the cap is reached."""
    handle = Number()
    prop = AllocationProp(1, 0, 1, 0)
    answer = cuda.cuMemCreate(handle, PIECE_MIB * MIB, ctypes.byref(prop), 0)
    assert answer in (0, OUT_OF_MEMORY), answer
    return None if answer else int(handle)


def at_an_address(cuda: Cuda, handle: int, bind: Callable[[int], None]) -> None:
    """Bind by address: mapped for that moment alone."""
    address = cuda.get("cuMemAddressReserve", PIECE_MIB * MIB, 0, 0, 0)
    cuda.ok("cuMemMap", address, PIECE_MIB * MIB, 0, handle, 0)
    access = AccessDesc(1, 0, 3)
    cuda.ok("cuMemSetAccess", address, PIECE_MIB * MIB, ctypes.byref(access), 1)
    bind(address)
    cuda.ok("cuMemUnmap", address, PIECE_MIB * MIB)
    cuda.ok("cuMemAddressFree", address, PIECE_MIB * MIB)


class Multicast:
    """A multicast object of one device."""

    def __init__(self, cuda: Cuda, how: str) -> None:
        self.cuda, self.how = cuda, how
        prop = MulticastProp(1, MOST * PIECE_MIB * MIB)
        self.object = cuda.get("cuMulticastCreate", ctypes.byref(prop))
        cuda.ok("cuMulticastAddDevice", self.object, 0)

    def bind(self, handle: int, at: int) -> None:
        size, to = PIECE_MIB * MIB, self.object
        by_address = lambda name, *device: at_an_address(  # noqa: E731
            self.cuda, handle, lambda address: self.cuda.ok(name, to, *device, at, address, size, 0)
        )
        match self.how:
            case "memory":
                self.cuda.ok("cuMulticastBindMem", to, at, handle, 0, size, 0)
            case "memory_v2":
                self.cuda.ok("cuMulticastBindMem_v2", to, 0, at, handle, 0, size, 0)
            case "address":
                by_address("cuMulticastBindAddr")
            case "address_v2":
                by_address("cuMulticastBindAddr_v2", 0)

    def unbind(self, at: int, size: int) -> None:
        self.cuda.ok("cuMulticastUnbind", self.object, 0, at, size)

    def end(self) -> None:
        self.cuda.ok("cuMemRelease", self.object)


class Endpoint:
    """A logical endpoint of one device."""

    def __init__(self, cuda: Cuda, how: str) -> None:
        self.cuda, self.how = cuda, how
        self.id = cuda.get("cuLogicalEndpointIdReserve", 1)
        prop = EndpointProp(1, 0, MOST * PIECE_MIB * MIB)
        cuda.ok("cuLogicalEndpointCreate", self.id, ctypes.byref(prop))

    def bind(self, handle: int, at: int) -> None:
        size = PIECE_MIB * MIB
        if self.how == "endpoint":
            self.cuda.ok("cuLogicalEndpointBindMem", self.id, 0, at, handle, 0, size, 0)
            return
        name = "cuLogicalEndpointBindAddr"
        at_an_address(
            self.cuda, handle, lambda address: self.cuda.ok(name, self.id, 0, at, address, size, 0)
        )

    def unbind(self, at: int, size: int) -> None:
        self.cuda.ok("cuLogicalEndpointUnbind", self.id, 0, at, size)

    def end(self) -> None:
        self.cuda.ok("cuLogicalEndpointDestroy", self.id)


class Sparse:
    """A sparse array, or one with mip levels."""

    def __init__(self, cuda: Cuda, how: str) -> None:
        self.cuda, self.mipmap, self.how = cuda, int(how == "mipmap"), how
        shape = ArrayDescriptor(1 << 14, 1 << 14, 0, 1, 1, SPARSE)
        if self.mipmap:
            self.made = cuda.get("cuMipmappedArrayCreate", ctypes.byref(shape), 1)
        else:
            self.made = cuda.get("cuArray3DCreate_v2", ctypes.byref(shape))

    def bind(self, handle: int, at: int) -> None:
        self._map(MAP, handle, at)

    def unbind(self, at: int, size: int) -> None:
        for each in range(at, at + size, PIECE_MIB * MIB):
            self._map(UNMAP, 0, each)

    def end(self) -> None:
        if self.how == "array of a context":
            self.cuda.ok("cuCtxDestroy_v2", self.cuda.get("cuCtxGetCurrent"))
            self.cuda.ok("cuCtxCreate_v2", Number(), 0, 0)
        else:
            name = "cuMipmappedArrayDestroy" if self.mipmap else "cuArrayDestroy"
            self.cuda.ok(name, self.made)

    def _map(self, operation: int, handle: int, at: int) -> None:
        part = (ctypes.c_uint64 * 4)(0, at)
        each = ArrayMap(self.mipmap, self.made, 0, part, operation, 0, handle, 0, 1)
        name = "cuMemMapArrayAsync_ptsz" if self.how == "array by thread" else "cuMemMapArrayAsync"
        self.cuda.ok(name, ctypes.byref(each), 1, 0)


def target(cuda: Cuda, how: str) -> Multicast | Endpoint | Sparse:
    if how.startswith("endpoint"):
        return Endpoint(cuda, how)
    return Sparse(cuda, how) if how.startswith(("array", "mipmap")) else Multicast(cuda, how)


def fill(cuda: Cuda, to: Multicast | Endpoint | Sparse) -> int:
    """Bind piece after piece and release each handle; how many there were."""
    pieces = 0
    while pieces < MOST and (handle := memory(cuda)) is not None:
        to.bind(handle, pieces * PIECE_MIB * MIB)
        cuda.ok("cuMemRelease", handle)
        pieces += 1
    return pieces


def bound_and_released(how: str) -> dict[str, float]:
    """What can be had that way; what is free then, with two pieces unbound, and at the end."""
    cuda = Cuda()
    to = target(cuda, how)
    seen: dict[str, float] = {"pieces": fill(cuda, to), "full": cuda.free_mib()}
    to.unbind(PIECE_MIB * MIB, 2 * PIECE_MIB * MIB)
    seen["unbound"] = cuda.free_mib()
    to.end()
    seen["end"] = cuda.free_mib()
    seen["again"] = fill(cuda, target(cuda, how))
    return seen


def bound_twice() -> list[float]:
    """Memory in two places of one array and one of another: free while any of them is there."""
    cuda = Cuda()
    one, other = Sparse(cuda, "array"), Sparse(cuda, "mipmap")
    handle = memory(cuda)
    assert handle is not None
    for at in range(2):
        one.bind(handle, at)
    other.bind(handle, 0)
    cuda.ok("cuMemRelease", handle)
    seen = [cuda.free_mib()]
    for each in (one, other):
        each.end()
        seen.append(cuda.free_mib())
    return seen


def mapped_multicast() -> list[float]:
    """What is free while an object without a handle is mapped, and after that."""
    cuda = Cuda()
    to, handle = Multicast(cuda, "memory"), memory(cuda)
    assert handle is not None
    to.bind(handle, 0)
    cuda.ok("cuMemRelease", handle)
    address = cuda.get("cuMemAddressReserve", PIECE_MIB * MIB, 0, 0, 0)
    cuda.ok("cuMemMap", address, PIECE_MIB * MIB, 0, to.object, 0)
    to.end()
    seen = [cuda.free_mib()]
    cuda.ok("cuMemUnmap", address, PIECE_MIB * MIB)
    return [*seen, cuda.free_mib()]


def refused_binding() -> float:
    """What is free after a bind that the driver refused, and the release."""
    cuda = Cuda()
    to, handle = Multicast(cuda, "memory"), memory(cuda)
    assert handle is not None
    beyond = MOST * PIECE_MIB * MIB
    assert cuda.cuMulticastBindMem(to.object, beyond, handle, 0, PIECE_MIB * MIB, 0)
    cuda.ok("cuMemRelease", handle)
    return cuda.free_mib()
