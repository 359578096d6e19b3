"""Structs of the CUDA driver's interface for ctypes, as `native/include/cuda_abi.h` has them."""

import ctypes


class AllocationProp(ctypes.Structure):
    """CUmemAllocationProp of pinned memory on a device."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("rest", ctypes.c_uint64 * 2),
    ]


class AccessDesc(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int), ("flags", ctypes.c_int)]


class PoolProps(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("max_size", ctypes.c_size_t),
        ("rest", ctypes.c_ubyte * 56),
    ]


class AllocNodeParams(ctypes.Structure):
    _fields_ = [
        ("pool", PoolProps),
        ("access", ctypes.c_void_p),
        ("access_count", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
        ("pointer", ctypes.c_uint64),
    ]


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    ]


class Requirements(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("rest", ctypes.c_ubyte * 24)]


class ArrayMap(ctypes.Structure):
    """CUarrayMapInfo."""

    _fields_ = [
        ("resource_type", ctypes.c_int),
        ("resource", ctypes.c_uint64),
        ("part_type", ctypes.c_int),
        ("part", ctypes.c_uint64 * 4),
        ("operation", ctypes.c_int),
        ("handle_type", ctypes.c_int),
        ("handle", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("devices", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("reserved", ctypes.c_uint * 2),
    ]


class ChildParams(ctypes.Structure):
    """CUgraphNodeParams of a graph in a graph."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("graph", ctypes.c_uint64),
        ("ownership", ctypes.c_int),
        ("rest", ctypes.c_ubyte * 228),
    ]


class MulticastProp(ctypes.Structure):
    """CUmulticastObjectProp."""

    _fields_ = [
        ("devices", ctypes.c_uint),
        ("size", ctypes.c_size_t),
        ("rest", ctypes.c_uint64 * 2),
    ]


class EndpointProp(ctypes.Structure):
    """CUlogicalEndpointProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("devices", ctypes.c_uint),
        ("size", ctypes.c_uint64),
        ("rest", ctypes.c_uint * 2),
    ]
