/*
 * Memory that is bound: to multicast objects, to logical endpoints, and into sparse arrays. It
 * stays until it is unbound, or what it is bound to is gone, also when its handle is released
 * before. (What the real driver keeps is not documented; this is the dearest reading.)
 */
#include <stdlib.h>
#include <string.h>

#include "vmm.h"

enum { ENDPOINTS = 64, EVERY_DEVICE = -1 };

typedef struct Binding {
    uintptr_t target; /* object, array, or endpoint */
    int device;
    uint64_t offset, bytes;
    Physical *physical;
    struct Binding *next;
} Binding;

static Binding *bindings;
static struct {
    bool reserved, made;
    uint64_t bytes;
} endpoints[ENDPOINTS];

static void unbind(uintptr_t target, int device, uint64_t offset, uint64_t bytes) {
    for (Binding **link = &bindings; *link;) {
        Binding *gone = *link;
        if (gone->target != target || (device != EVERY_DEVICE && gone->device != device) ||
            gone->offset < offset || gone->offset - offset >= bytes) {
            link = &gone->next;
            continue;
        }
        *link = gone->next;
        fg_physical_unbound(gone->physical);
        free(gone);
    }
}

static CUresult bind(Binding binding) {
    for (Binding *other = bindings; other; other = other->next) {
        bool overlap = other->offset < binding.offset + binding.bytes &&
                       binding.offset < other->offset + other->bytes;
        if (other->target == binding.target && other->device == binding.device && overlap) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    Binding *made = malloc(sizeof *made);
    if (!made) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = binding;
    made->next = bindings;
    bindings = made;
    binding.physical->bindings++;
    return CUDA_SUCCESS;
}

void fg_unbind_all(const void *target) {
    unbind((uintptr_t)target, EVERY_DEVICE, 0, UINT64_MAX);
}

void fg_bindings_drop(void) {
    while (bindings) {
        Binding *gone = bindings;
        bindings = gone->next;
        free(gone);
    }
    memset(endpoints, 0, sizeof endpoints);
}

/* Some memory of this process, by handle or by address, if all of it is there. */
static Physical *part(Physical *physical, uint64_t offset, uint64_t bytes) {
    bool whole = physical && bytes && offset <= physical->bytes;
    return whole && bytes <= physical->bytes - offset ? physical : NULL;
}

static Physical *part_at(CUdeviceptr pointer, uint64_t bytes) {
    size_t offset;
    Physical *physical = fg_physical_at(pointer, &offset);
    return part(physical, offset, bytes);
}

static CUresult bind_to(Physical *object, uint64_t offset, uint64_t bytes, Physical *physical) {
    FG_REQUIRE(object && object->multicast && physical && physical->charged &&
                   offset <= object->bytes && bytes <= object->bytes - offset,
               CUDA_ERROR_INVALID_VALUE);
    return fg_leave(bind((Binding){.target = (uintptr_t)object,
                                   .device = (int)(physical->charged - fg.device),
                                   .offset = offset,
                                   .bytes = bytes,
                                   .physical = physical}));
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
                           const CUmulticastObjectProp *properties) {
    FG_ENTER();
    FG_REQUIRE(handle && properties && properties->numDevices && properties->size &&
                   properties->size % fg.state.config.granularity == 0,
               CUDA_ERROR_INVALID_VALUE);
    Physical wanted = {.bytes = properties->size, .file = -1, .multicast = true};
    return fg_leave(fg_physical_new(wanted, handle));
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    Physical *object = fg_physical(handle);
    return fg_leave(object && object->multicast ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t multicast_offset,
                            CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                            unsigned long long flags) {
    FG_ENTER();
    return bind_to(fg_physical(multicast), multicast_offset, bytes,
                   part(fg_physical(handle), offset, bytes));
}

CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice ordinal,
                               size_t multicast_offset, CUmemGenericAllocationHandle handle,
                               size_t offset, size_t bytes, unsigned long long flags) {
    FG_ENTER_DEVICE(ordinal, device);
    return bind_to(fg_physical(multicast), multicast_offset, bytes,
                   part(fg_physical(handle), offset, bytes));
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t multicast_offset,
                             CUdeviceptr pointer, size_t bytes, unsigned long long flags) {
    FG_ENTER();
    return bind_to(fg_physical(multicast), multicast_offset, bytes, part_at(pointer, bytes));
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice ordinal,
                                size_t multicast_offset, CUdeviceptr pointer, size_t bytes,
                                unsigned long long flags) {
    FG_ENTER_DEVICE(ordinal, device);
    return bind_to(fg_physical(multicast), multicast_offset, bytes, part_at(pointer, bytes));
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice ordinal, size_t offset,
                           size_t bytes) {
    FG_ENTER_DEVICE(ordinal, device);
    Physical *object = fg_physical(multicast);
    FG_REQUIRE(object && object->multicast, CUDA_ERROR_INVALID_VALUE);
    unbind((uintptr_t)object, ordinal, offset, bytes);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *properties,
                                   int option) {
    FG_ENTER();
    FG_REQUIRE(granularity && properties, CUDA_ERROR_INVALID_VALUE);
    *granularity = fg.state.config.granularity;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuLogicalEndpointIdReserve(CUlogicalEndpointId *first, uint32_t count) {
    FG_ENTER();
    FG_REQUIRE(first && count == 1, CUDA_ERROR_INVALID_VALUE);
    for (CUlogicalEndpointId id = 0; id < ENDPOINTS; id++) {
        if (!endpoints[id].reserved) {
            endpoints[id].reserved = true;
            *first = id;
            return fg_leave(CUDA_SUCCESS);
        }
    }
    return fg_leave(CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuLogicalEndpointCreate(CUlogicalEndpointId id, const CUlogicalEndpointProp *properties) {
    FG_ENTER();
    FG_REQUIRE(id < ENDPOINTS && endpoints[id].reserved && !endpoints[id].made && properties,
               CUDA_ERROR_INVALID_VALUE);
    endpoints[id].made = true;
    endpoints[id].bytes = properties->size;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuLogicalEndpointDestroy(CUlogicalEndpointId id) {
    FG_ENTER();
    FG_REQUIRE(id < ENDPOINTS && endpoints[id].made, CUDA_ERROR_INVALID_VALUE);
    endpoints[id].made = false;
    fg_unbind_all(&endpoints[id]);
    return fg_leave(CUDA_SUCCESS);
}

static CUresult bind_endpoint(CUlogicalEndpointId id, CUdevice ordinal, uint64_t offset,
                              uint64_t bytes, Physical *physical) {
    FG_REQUIRE(id < ENDPOINTS && endpoints[id].made && physical && offset <= endpoints[id].bytes &&
                   bytes <= endpoints[id].bytes - offset,
               CUDA_ERROR_INVALID_VALUE);
    return fg_leave(bind((Binding){.target = (uintptr_t)&endpoints[id],
                                   .device = ordinal,
                                   .offset = offset,
                                   .bytes = bytes,
                                   .physical = physical}));
}

CUresult cuLogicalEndpointBindMem(CUlogicalEndpointId id, CUdevice ordinal, uint64_t at,
                                  CUmemGenericAllocationHandle handle, uint64_t offset,
                                  uint64_t bytes, unsigned long long flags) {
    FG_ENTER_DEVICE(ordinal, device);
    return bind_endpoint(id, ordinal, at, bytes, part(fg_physical(handle), offset, bytes));
}

CUresult cuLogicalEndpointBindAddr(CUlogicalEndpointId id, CUdevice ordinal, uint64_t at,
                                   void *address, uint64_t bytes, unsigned long long flags) {
    FG_ENTER_DEVICE(ordinal, device);
    return bind_endpoint(id, ordinal, at, bytes, part_at((CUdeviceptr)(uintptr_t)address, bytes));
}

CUresult cuLogicalEndpointUnbind(CUlogicalEndpointId id, CUdevice ordinal, uint64_t offset,
                                 uint64_t bytes) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(id < ENDPOINTS && endpoints[id].made, CUDA_ERROR_INVALID_VALUE);
    unbind((uintptr_t)&endpoints[id], ordinal, offset, bytes);
    return fg_leave(CUDA_SUCCESS);
}

/* A part of an array, as a number: the same for the same part. */
static uint64_t part_of_array(const CUarrayMapInfo *map) {
    uint64_t number = (uint64_t)map->subresourceType;
    for (int i = 0; i < 4; i++) {
        number = number * 1000003 + map->subresource[i];
    }
    return number >> 1;
}

static CUresult map_array(CUarrayMapInfo *maps, unsigned int count) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(maps && count, CUDA_ERROR_INVALID_VALUE);
    for (unsigned int i = 0; i < count; i++) {
        const CUarrayMapInfo *map = &maps[i];
        bool out = map->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP;
        Physical *physical = fg_physical(map->memHandle);
        FG_REQUIRE(fg_array_is_sparse(map) && (out || physical), CUDA_ERROR_INVALID_VALUE);
        unbind((uintptr_t)map->resource.array, EVERY_DEVICE, part_of_array(map), 1);
        CUresult result = CUDA_SUCCESS;
        if (!out) {
            result = bind((Binding){.target = (uintptr_t)map->resource.array,
                                    .offset = part_of_array(map),
                                    .bytes = 1,
                                    .physical = physical});
        }
        FG_REQUIRE(result == CUDA_SUCCESS, result);
    }
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuMemMapArrayAsync, (CUarrayMapInfo * maps, unsigned int count, CUstream stream),
           map_array(maps, count))
FG_FORWARD(cuMemMapArrayAsync_ptsz, (CUarrayMapInfo * maps, unsigned int count, CUstream stream),
           map_array(maps, count))
