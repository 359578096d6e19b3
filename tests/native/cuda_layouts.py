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
