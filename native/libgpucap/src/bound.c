/*
 * Memory that is bound to a multicast object or a logical endpoint, or mapped into a sparse array.
 * That keeps it without a handle, so it is charged until then, as if it were mapped.
 *
 * What is mapped into an array counts until the array is gone: the driver maps it out in stream
 * order, at a time that nobody is told. What is bound to an object of another process counts until
 * it is unbound.
 */
#include "bound.h"

#include "charge.h"
#include "keep.h"

#include <stdlib.h>

#define ENDPOINT (UINT64_C(1) << 63) /* a target that is one, with its number */

/* A target by what is never another's: its age. One that is not known here goes by its handle. */
static uint64_t target_of(enum owned_kind kind, uint64_t handle) {
    struct owned entry;
    return owned_look_up(kind, handle, &entry) ? entry.serial : handle;
}

struct binding {
    struct keeper keeper;
    uint64_t target, offset;
    uint64_t memory; /* its serial */
    int device;
};

static struct binding begin(uint64_t target, uint64_t offset, CUmemGenericAllocationHandle handle) {
    struct owned memory;
    struct binding binding = {.target = target, .offset = offset};
    if (owned_look_up(OWNED_HANDLE, handle, &memory)) {
        binding.device = memory.device;
        binding.memory = memory.serial;
    }
    binding.keeper = keep_begin(handle);
    return binding;
}

static CUresult end(const struct binding *binding, CUresult answer, uint64_t bytes) {
    struct owned entry = {.bytes = bytes, .device = binding->device, .target = binding->target};
    keep_bound(&binding->keeper, answer, &entry, binding->offset);
    return answer;
}

void bound_context_gone(uint64_t context, uint64_t serial) {
    static const enum owned_kind kinds[] = {OWNED_ARRAY, OWNED_MIPMAP};
    struct owned array;
    uint64_t key;
    for (int i = 0; i < 2; i++)
        for (uint64_t at = 0; keep_any_bound() && owned_next(kinds[i], &at, &key, &array);)
            if (array.owner == context && array.serial < serial)
                keep_target_gone(array.serial);
}

/* The memory that is mapped at an address, which stays while it is; 0: none of ours. */
static CUmemGenericAllocationHandle memory_at(void *address) {
    CUmemGenericAllocationHandle handle = 0;
    if (CALL_DRIVER(cuMemRetainAllocationHandle, &handle, address) != CUDA_SUCCESS)
        return 0;
    CALL_DRIVER(cuMemRelease, handle);
    return handle;
}

#define BIND(symbol, parameters, target, offset, memory, bytes, ...)                               \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        struct binding binding = begin(target, offset, memory);                                    \
        return end(&binding, CALL_DRIVER(symbol, __VA_ARGS__), bytes);                             \
    }

#define UNBIND(symbol, parameters, target, ...)                                                    \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        struct place place;                                                                        \
        uint64_t before = owned_serial();                                                          \
        CUresult answer = CALL_DRIVER(symbol, __VA_ARGS__);                                        \
        if (answer == CUDA_SUCCESS && charge_ordinal(device, &place))                              \
            keep_unbound(target, place.device, offset, bytes, before);                             \
        return answer;                                                                             \
    }

#define OBJECT target_of(OWNED_HANDLE, multicast)
BIND(cuMulticastBindMem,
     (CUmemGenericAllocationHandle multicast, size_t multicast_offset,
      CUmemGenericAllocationHandle handle, size_t offset, size_t bytes, unsigned long long flags),
     OBJECT, multicast_offset, handle, bytes, multicast, multicast_offset, handle, offset, bytes,
     flags)
BIND(cuMulticastBindMem_v2,
     (CUmemGenericAllocationHandle multicast, CUdevice device, size_t multicast_offset,
      CUmemGenericAllocationHandle handle, size_t offset, size_t bytes, unsigned long long flags),
     OBJECT, multicast_offset, handle, bytes, multicast, device, multicast_offset, handle, offset,
     bytes, flags)
BIND(cuMulticastBindAddr,
     (CUmemGenericAllocationHandle multicast, size_t multicast_offset, CUdeviceptr pointer,
      size_t bytes, unsigned long long flags),
     OBJECT, multicast_offset, memory_at((void *)(uintptr_t)pointer), bytes, multicast,
     multicast_offset, pointer, bytes, flags)
BIND(cuMulticastBindAddr_v2,
     (CUmemGenericAllocationHandle multicast, CUdevice device, size_t multicast_offset,
      CUdeviceptr pointer, size_t bytes, unsigned long long flags),
     OBJECT, multicast_offset, memory_at((void *)(uintptr_t)pointer), bytes, multicast, device,
     multicast_offset, pointer, bytes, flags)
UNBIND(cuMulticastUnbind,
       (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, size_t bytes),
       OBJECT, multicast, device, offset, bytes)

BIND(cuLogicalEndpointBindMem,
     (CUlogicalEndpointId endpoint, CUdevice device, uint64_t endpoint_offset,
      CUmemGenericAllocationHandle handle, uint64_t offset, uint64_t bytes,
      unsigned long long flags),
     ENDPOINT | endpoint, endpoint_offset, handle, bytes, endpoint, device, endpoint_offset, handle,
     offset, bytes, flags)
BIND(cuLogicalEndpointBindAddr,
     (CUlogicalEndpointId endpoint, CUdevice device, uint64_t endpoint_offset, void *address,
      uint64_t bytes, unsigned long long flags),
     ENDPOINT | endpoint, endpoint_offset, memory_at(address), bytes, endpoint, device,
     endpoint_offset, address, bytes, flags)
UNBIND(cuLogicalEndpointUnbind,
       (CUlogicalEndpointId endpoint, CUdevice device, uint64_t offset, uint64_t bytes),
       ENDPOINT | endpoint, endpoint, device, offset, bytes)

CUresult cuLogicalEndpointDestroy(CUlogicalEndpointId endpoint) {
    ENTER(cuLogicalEndpointDestroy, endpoint);
    uint64_t before = owned_serial();
    CUresult answer = CALL_DRIVER(cuLogicalEndpointDestroy, endpoint);
    if (answer == CUDA_SUCCESS)
        keep_unbound(ENDPOINT | endpoint, KEEP_EVERY_DEVICE, 0, UINT64_MAX, before);
    return answer;
}

/* Once for each array and memory, wherever it is mapped in it. */
static struct binding begin_map(const CUarrayMapInfo *map) {
    bool mipmap = map->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    uint64_t array = (uint64_t)(uintptr_t)map->resource.array;
    struct binding binding =
        begin(target_of(mipmap ? OWNED_MIPMAP : OWNED_ARRAY, array), 0, map->memHandle);
    binding.offset = binding.memory;
    return binding;
}

#define MAP(symbol)                                                                                \
    CUresult symbol(CUarrayMapInfo *maps, unsigned int count, CUstream stream) {                   \
        ENTER(symbol, maps, count, stream);                                                        \
        struct binding *of = maps ? calloc(count, sizeof *of) : NULL;                              \
        if (maps && count && !of)                                                                  \
            return CUDA_ERROR_OUT_OF_MEMORY; /* nobody would count it */                           \
        for (unsigned int i = 0; of && i < count; i++)                                             \
            if (maps[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP)                             \
                of[i] = begin_map(&maps[i]);                                                       \
        CUresult answer = CALL_DRIVER(symbol, maps, count, stream);                                \
        for (unsigned int i = 0; of && i < count; i++)                                             \
            end(&of[i], answer, 1);                                                                \
        free(of);                                                                                  \
        return answer;                                                                             \
    }
MAP(cuMemMapArrayAsync)
MAP(cuMemMapArrayAsync_ptsz)
