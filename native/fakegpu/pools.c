/*
 * Memory in stream order. A pool reserves device memory in granules and keeps it when it is freed,
 * until a synchronisation with the stream of the free finds more than its release threshold, or
 * until it is trimmed. Streams here have no work to wait for, so a free takes effect at once; the
 * synchronisation still counts.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

struct CUmemPoolHandle_st {
    Device *device;
    bool alive, host; /* host: of the machine's memory, which costs nothing here */
    uint64_t used, used_high, reserved, reserved_high, threshold, most;
    int reuse[3];      /* the attributes REUSE_*, kept and not obeyed */
    CUstream freed_in; /* the stream of the last free; NULL: the default one, or of no stream */
    Pool *next;
};

/* One that was destroyed, or a new one: as with real ones, its address may be that of an earlier.
 */
static Pool *free_pool(Device *device) {
    Pool *found = device->pools;
    while (found && (found->alive || found->used)) {
        found = found->next;
    }
    if (!found && (found = calloc(1, sizeof *found))) {
        found->next = device->pools;
        device->pools = found;
    }
    return found;
}

static Pool *new_pool(Device *device, uint64_t most) {
    Pool *pool = free_pool(device);
    if (pool) {
        *pool = (Pool){
            .device = device, .alive = true, .most = most, .reuse = {1, 1, 1}, .next = pool->next};
    }
    return pool;
}

void fg_pools_init(Device *device) {
    if (!device->default_pool) {
        device->default_pool = device->pool = new_pool(device, 0);
    }
}

void fg_pools_drop(Device *device) {
    for (Pool *pool = device->pools; pool; pool = pool->next) {
        pool->used = pool->reserved = 0;
    }
}

static bool is_pool(const Pool *pool) {
    for (int d = 0; d < fg.count; d++) {
        for (const Pool *known = fg.device[d].pools; known; known = known->next) {
            if (known == pool) {
                return pool->alive;
            }
        }
    }
    return false;
}

static bool take(Pool *pool, uint64_t bytes) {
    return pool->host || fg_take(pool->device, FG_POOL, bytes);
}

static void give(Pool *pool, uint64_t bytes) {
    if (!pool->host) {
        fg_give(pool->device, FG_POOL, bytes);
    }
}

static void shrink(Pool *pool, uint64_t keep) {
    uint64_t needed = fg_round_up(pool->used, fg.state.config.pool_granularity);
    keep = keep > needed ? keep : needed;
    if (pool->reserved > keep) {
        give(pool, pool->reserved - keep);
        pool->reserved = keep;
    }
}

void fg_pools_synchronize(Device *device, CUstream stream) {
    for (Pool *pool = device->pools; pool; pool = pool->next) {
        if (!stream || !pool->freed_in || pool->freed_in == stream) {
            shrink(pool, pool->threshold);
        }
    }
}

/* Before a pool may fail it takes back what the others only keep. */
static bool grow(Pool *pool, uint64_t more) {
    if (take(pool, more)) {
        return true;
    }
    for (Pool *other = pool->device->pools; other; other = other->next) {
        shrink(other, 0);
    }
    return take(pool, more);
}

CUresult fg_pool_allocate(Pool *pool, size_t bytes, CUdeviceptr *pointer) {
    size_t size = fg_round_up(bytes, 512);
    if (!pointer || !bytes || !is_pool(pool)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size < bytes || bytes > fg_usable(&fg.state.shared->device[pool->device->shared]) ||
        (pool->most && pool->used + size > pool->most)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t free_bytes = pool->reserved - pool->used;
    if (free_bytes < size) {
        uint64_t more = fg_round_up(size - free_bytes, fg.state.config.pool_granularity);
        if (!grow(pool, more)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        pool->reserved += more;
    }
    Allocation made = {.pointer = fg_map(size, false),
                       .bytes = size,
                       .device = (int)(pool->device - fg.device),
                       .kind = FG_POOL,
                       .pool = pool};
    if (!made.pointer || !fg_remember(made)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->used += size;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    pool->reserved_high =
        pool->reserved > pool->reserved_high ? pool->reserved : pool->reserved_high;
    *pointer = made.pointer;
    return CUDA_SUCCESS;
}

void fg_pool_free(Allocation *allocation) {
    Allocation gone = fg_forget(allocation);
    gone.pool->used -= gone.bytes;
    fg_unmap(gone.pointer, gone.bytes);
    if (!gone.pool->alive) {
        shrink(gone.pool, 0);
    }
}

static CUresult allocate_async(CUdeviceptr *pointer, size_t bytes, Pool *pool, CUstream stream) {
    if (fg.state.config.pool_delay) {
        usleep(fg.state.config.pool_delay);
    }
    FG_ENTER_CONTEXT(device);
    CUgraph graph;
    CUgraphNode node;
    FG_REQUIRE(pointer && bytes, CUDA_ERROR_INVALID_VALUE);
    if (fg_stream_capture(stream, &graph)) {
        return fg_leave(fg_graph_add_alloc(graph, device, bytes, pointer, &node));
    }
    return fg_leave(fg_pool_allocate(pool ? pool : device->pool, bytes, pointer));
}

FG_FORWARD(cuMemAllocAsync, (CUdeviceptr * pointer, size_t bytes, CUstream stream),
           allocate_async(pointer, bytes, NULL, stream))
FG_FORWARD(cuMemAllocAsync_ptsz, (CUdeviceptr * pointer, size_t bytes, CUstream stream),
           allocate_async(pointer, bytes, NULL, stream))
FG_FORWARD(cuMemAllocFromPoolAsync,
           (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
           pool ? allocate_async(pointer, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE)
FG_FORWARD(cuMemAllocFromPoolAsync_ptsz,
           (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream),
           pool ? allocate_async(pointer, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE)

static CUresult free_async(CUdeviceptr pointer, CUstream stream) {
    FG_ENTER_CONTEXT(device);
    CUgraph graph;
    CUgraphNode node;
    if (fg_stream_capture(stream, &graph)) {
        return fg_leave(fg_graph_add_free(graph, pointer, &node));
    }
    Allocation *allocation = fg_find(pointer);
    FG_REQUIRE(allocation && !allocation->foreign, CUDA_ERROR_INVALID_VALUE);
    if (allocation->kind == FG_POOL) {
        bool named = stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
        allocation->pool->freed_in = named ? stream : NULL;
    }
    fg_free(allocation);
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), free_async(pointer, stream))
FG_FORWARD(cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream), free_async(pointer, stream))

/* Managed memory takes a device's wherever it is to be at first: it moves when it is used. */
static Pool *pool_at(const CUmemLocation *location, CUmemAllocationType type, uint64_t most) {
    bool on_device = fg_on_device(location), managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
    int ordinal = on_device ? fg_ordinal(location) : 0;
    if (ordinal < 0 || ordinal >= fg.count || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) ||
        (!managed && location->type == CU_MEM_LOCATION_TYPE_INVALID)) {
        return NULL;
    }
    Pool *pool = new_pool(&fg.device[ordinal], most);
    if (pool) {
        pool->host = !on_device && !managed;
    }
    return pool;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    FG_ENTER();
    FG_REQUIRE(pool && properties, CUDA_ERROR_INVALID_VALUE);
    *pool = pool_at(&properties->location, properties->allocType, properties->maxSize);
    return fg_leave(*pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* The pools of locations: those of this machine's memory (one NUMA node), and managed ones. */
typedef struct {
    CUmemLocation location;
    CUmemAllocationType type;
    Pool *own, *current;
} OfLocation;
enum { LOCATIONS = 64, DOMAINS = 8 }; /* pools; locality domains of a device */
static OfLocation of_location[LOCATIONS];
static unsigned int of_process; /* the generation of it whose pools these are */

static OfLocation *find_location(const CUmemLocation *location, CUmemAllocationType type) {
    if (of_process != fg.generation) {
        memset(of_location, 0, sizeof of_location);
        of_process = fg.generation;
    }
    bool node = location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    bool domain = location->type == CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN;
    if ((node && location->id != 0) || (domain && location->id >> 8 >= DOMAINS) ||
        location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT) {
        return NULL;
    }
    for (int i = 0; i < LOCATIONS; i++) {
        OfLocation *it = &of_location[i];
        if (!it->own && (it->own = pool_at(location, type, 0))) {
            it->location = *location;
            it->type = type;
            it->current = it->own;
        }
        if (!it->own || (it->type == type && !memcmp(&it->location, location, sizeof *location))) {
            return it->own ? it : NULL;
        }
    }
    return NULL;
}

static bool is_default(const Pool *pool) {
    bool found = pool == pool->device->default_pool;
    for (int i = 0; i < LOCATIONS && of_process == fg.generation; i++) {
        found |= pool == of_location[i].own;
    }
    return found;
}

static bool is_devices(const CUmemLocation *location, CUmemAllocationType type) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

static CUresult pool_of_location(CUmemoryPool *pool, const CUmemLocation *location,
                                 CUmemAllocationType type, bool current) {
    FG_ENTER();
    OfLocation *of = pool && location ? find_location(location, type) : NULL;
    FG_REQUIRE(of, CUDA_ERROR_INVALID_VALUE);
    *pool = current ? of->current : of->own;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type) {
    return location && is_devices(location, type) ? cuDeviceGetDefaultMemPool(pool, location->id)
                                                  : pool_of_location(pool, location, type, false);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    return location && is_devices(location, type) ? cuDeviceGetMemPool(pool, location->id)
                                                  : pool_of_location(pool, location, type, true);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    if (location && is_devices(location, type)) {
        return cuDeviceSetMemPool(location->id, pool);
    }
    FG_ENTER();
    OfLocation *of = is_pool(pool) && location ? find_location(location, type) : NULL;
    FG_REQUIRE(of, CUDA_ERROR_INVALID_VALUE);
    of->current = pool;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    FG_ENTER();
    FG_REQUIRE(is_pool(pool) && !is_default(pool), CUDA_ERROR_INVALID_VALUE);
    pool->alive = false; /* what is allocated stays until it is freed */
    shrink(pool, 0);
    if (pool->device->pool == pool) {
        pool->device->pool = pool->device->default_pool;
    }
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
    FG_ENTER();
    FG_REQUIRE(is_pool(pool), CUDA_ERROR_INVALID_VALUE);
    shrink(pool, bytes_to_keep);
    return fg_leave(CUDA_SUCCESS);
}

static uint64_t *counter(Pool *pool, CUmemPool_attribute attribute) {
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static bool is_reuse(CUmemPool_attribute attribute) {
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    FG_ENTER();
    FG_REQUIRE(is_pool(pool) && value, CUDA_ERROR_INVALID_VALUE);
    if (is_reuse(attribute)) {
        memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
        return fg_leave(CUDA_SUCCESS);
    }
    FG_REQUIRE(counter(pool, attribute), CUDA_ERROR_INVALID_VALUE);
    memcpy(value, counter(pool, attribute), sizeof(uint64_t));
    return fg_leave(CUDA_SUCCESS);
}

/* The threshold is free to choose; a high-water mark can only be set back to what is now. */
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    FG_ENTER();
    FG_REQUIRE(is_pool(pool) && value, CUDA_ERROR_INVALID_VALUE);
    if (is_reuse(attribute)) {
        memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
        return fg_leave(CUDA_SUCCESS);
    }
    uint64_t number;
    memcpy(&number, value, sizeof number);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold = number;
    } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && number == 0) {
        pool->reserved_high = pool->reserved;
    } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && number == 0) {
        pool->used_high = pool->used;
    } else {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
    FG_ENTER();
    return fg_leave(is_pool(pool) && access && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location) {
    FG_ENTER();
    FG_REQUIRE(is_pool(pool) && flags && location, CUDA_ERROR_INVALID_VALUE);
    *flags = &fg.device[location->id] == pool->device ? 3 : 0;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(pool, CUDA_ERROR_INVALID_VALUE);
    fg_pools_init(device);
    *pool = device->default_pool;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(pool, CUDA_ERROR_INVALID_VALUE);
    fg_pools_init(device);
    *pool = device->pool;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(is_pool(pool) && pool->device == device, CUDA_ERROR_INVALID_VALUE);
    fg_pools_init(device);
    device->pool = pool;
    return fg_leave(CUDA_SUCCESS);
}

/* Pools are not shared between pretended processes. */
CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
    FG_ENTER();
    return fg_leave(CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags) {
    FG_ENTER();
    return fg_leave(CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr pointer) {
    FG_ENTER();
    return fg_leave(CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *pointer, CUmemoryPool pool,
                                CUmemPoolPtrExportData *data) {
    FG_ENTER();
    return fg_leave(CUDA_ERROR_NOT_SUPPORTED);
}
