/*
 * Memory at once: cuMemAlloc and its kin and the views. As in the real
 * driver an allocation takes whole granules of the device, and small ones share granules.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"

enum { PITCH = 512 };

static bool is_small(size_t bytes) {
    return bytes < fg.state.config.granularity / 2;
}

/* What the device gives for one more allocation: whole granules. */
static bool take(Device *device, FgKind kind, size_t bytes, uint64_t *charged) {
    uint64_t granule = fg.state.config.granularity;
    *charged = is_small(bytes) ? 0 : fg_round_up(bytes, granule);
    if (!is_small(bytes)) {
        return fg_take(device, kind, *charged);
    }
    uint64_t small = device->small + fg_round_up(bytes, PITCH);
    uint64_t more = fg_round_up(small, granule) - fg_round_up(device->small, granule);
    if (more && !fg_take(device, FG_SYNC, more)) {
        return false;
    }
    device->small = small;
    return true;
}

static void give(Device *device, FgKind kind, size_t bytes, uint64_t charged) {
    uint64_t granule = fg.state.config.granularity;
    if (!is_small(bytes)) {
        fg_give(device, kind, charged);
        return;
    }
    uint64_t small = device->small - fg_round_up(bytes, PITCH);
    fg_give(device, FG_SYNC, fg_round_up(device->small, granule) - fg_round_up(small, granule));
    device->small = small;
}

CUresult fg_allocate(Device *device, FgKind kind, size_t bytes, bool low, CUdeviceptr *pointer) {
    Allocation made = {.bytes = bytes, .device = (int)(device - fg.device), .kind = kind};
    if (!pointer || !bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > fg_usable(&fg.state.shared->device[device->shared]) ||
        !take(device, kind, bytes, &made.charged)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.pointer = fg_map(bytes, low);
    if (!made.pointer || !fg_remember(made)) {
        give(device, kind, bytes, made.charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = made.pointer;
    return CUDA_SUCCESS;
}

void fg_free(Allocation *allocation) {
    if (allocation->kind == FG_POOL) {
        fg_pool_free(allocation);
    } else if (allocation->kind == FG_GRAPH) {
        fg_graph_free(allocation);
    } else {
        Allocation gone = fg_forget(allocation);
        if (!gone.costless && !gone.foreign) {
            give(&fg.device[gone.device], gone.kind, gone.bytes, gone.charged);
        }
        if (gone.share) {
            fg_lock(&fg.state);
            fg_share_leave(&fg.state, fg_share_find(&fg.state, gone.share), !gone.foreign);
            fg_unlock(&fg.state);
        }
        fg_unmap(gone.pointer, gone.bytes);
    }
}

void fg_device_drop(Device *device) {
    fg_forget_device((int)(device - fg.device));
    fg_arrays_drop(device);
    device->small = 0;
    device->graph_used = device->graph_reserved = 0;
    fg_pools_drop(device);
    fg_lock(&fg.state);
    for (int kind = 0; kind < FG_KINDS; kind++) {
        uint64_t held = fg.state.shared->slot[fg.state.slot].bytes[device->shared][kind];
        if (kind != FG_CONTEXT && kind != FG_VMM) { /* cuMemCreate needs no context */
            fg_release(&fg.state, device->shared, (FgKind)kind, held);
        }
    }
    fg_unlock(&fg.state);
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    FG_ENTER_CONTEXT(device);
    return fg_leave(fg_allocate(device, FG_SYNC, bytes, false, pointer));
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
    FG_ENTER_CONTEXT(device);
    CUdeviceptr wide = 0;
    CUresult result = fg_allocate(device, FG_SYNC, bytes, true, pointer ? &wide : NULL);
    if (result == CUDA_SUCCESS) {
        *pointer = (CUdeviceptr_v1)wide;
    }
    return fg_leave(result);
}

static CUresult pitched(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                        bool low) {
    FG_ENTER_CONTEXT(device);
    size_t row = fg_round_up(width, PITCH), bytes;
    FG_REQUIRE(pitch && width && height, CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(!__builtin_mul_overflow(row, height, &bytes), CUDA_ERROR_OUT_OF_MEMORY);
    CUresult result = fg_allocate(device, FG_SYNC, bytes, low, pointer);
    if (result == CUDA_SUCCESS) {
        *pitch = row;
    }
    return fg_leave(result);
}

static bool is_element(unsigned int bytes) {
    return bytes == 4 || bytes == 8 || bytes == 16;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element) {
    return pitched(pointer, is_element(element) ? pitch : NULL, width, height, false);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element) {
    CUdeviceptr wide = 0;
    size_t row = 0;
    bool valid = pitch && is_element(element);
    CUresult result = pitched(pointer ? &wide : NULL, valid ? &row : NULL, width, height, true);
    if (result == CUDA_SUCCESS) {
        *pointer = (CUdeviceptr_v1)wide;
        *pitch = (unsigned int)row;
    }
    return result;
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(flags == 1 || flags == 2, CUDA_ERROR_INVALID_VALUE); /* global or host */
    return fg_leave(fg_allocate(device, FG_MANAGED, bytes, false, pointer));
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(pointer, CUDA_SUCCESS);
    Allocation *allocation = fg_find(pointer);
    FG_REQUIRE(allocation && !allocation->foreign, CUDA_ERROR_INVALID_VALUE);
    fg_free(allocation);
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuMemFree, (CUdeviceptr_v1 pointer), cuMemFree_v2(pointer))

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer) {
    FG_ENTER_CONTEXT(device);
    Allocation *allocation = fg_find_range(pointer);
    FG_REQUIRE(allocation, CUDA_ERROR_NOT_FOUND);
    if (base) {
        *base = allocation->pointer;
    }
    if (bytes) {
        *bytes = allocation->bytes;
    }
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 pointer) {
    CUdeviceptr wide_base = 0;
    size_t wide_bytes = 0;
    CUresult result = cuMemGetAddressRange_v2(&wide_base, &wide_bytes, pointer);
    if (result == CUDA_SUCCESS && base) {
        *base = (CUdeviceptr_v1)wide_base;
    }
    if (result == CUDA_SUCCESS && bytes) {
        *bytes = (unsigned int)wide_bytes;
    }
    return result;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    FG_ENTER_CONTEXT(device);
    fg_lock(&fg.state);
    fg_reap(&fg.state);
    const FgDevice *shared = &fg.state.shared->device[device->shared];
    uint64_t all = fg_usable(shared), left = all > shared->used ? all - shared->used : 0;
    const FgSlot *own = &fg.state.shared->slot[fg.state.slot];
    const FgLimit *limit = fg_limit(&fg.state, device->shared, own->cgroups);
    if (limit && limit->hard < all) {
        uint64_t used = fg_limit_used(&fg.state, device->shared, limit->cgroup);
        uint64_t headroom = limit->hard > used ? limit->hard - used : 0;
        all = limit->hard;
        left = left < headroom ? left : headroom;
    }
    fg_unlock(&fg.state);
    if (free_bytes) {
        *free_bytes = left;
    }
    if (total) {
        *total = all;
    }
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total) {
    size_t wide_free = 0, wide_total = 0;
    CUresult result = cuMemGetInfo_v2(&wide_free, &wide_total);
    if (result == CUDA_SUCCESS && free_bytes) {
        *free_bytes = wide_free > UINT32_MAX ? UINT32_MAX : (unsigned int)wide_free;
    }
    if (result == CUDA_SUCCESS && total) {
        *total = wide_total > UINT32_MAX ? UINT32_MAX : (unsigned int)wide_total;
    }
    return result;
}
