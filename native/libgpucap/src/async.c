/* Memory in stream order: allocations from pools, and where the driver gives their memory back. */
#include "charge.h"
#include "pools.h"

/* The pool that cuMemAllocAsync takes from: the current one of the stream's device. */
static bool stream_pool(CUstream stream, struct place *place, CUmemoryPool *pool) {
    CUcontext context = NULL;
    bool default_stream = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    if (!charge_current(place))
        return false;
    if (!default_stream && CALL_DRIVER(cuStreamGetCtx, stream, &context) == CUDA_SUCCESS &&
        (uint64_t)(uintptr_t)context != place->context &&
        CALL_DRIVER(cuCtxPushCurrent_v2, context) == CUDA_SUCCESS) {
        bool known = charge_current(place);
        CALL_DRIVER(cuCtxPopCurrent_v2, &context);
        if (!known)
            return false;
    }
    return CALL_DRIVER(cuDeviceGetMemPool, pool, place->ordinal) == CUDA_SUCCESS;
}

#define ALLOCATE(symbol, ...)                                                                      \
    do {                                                                                           \
        struct growth growth;                                                                      \
        if (!pools_begin(&growth, pool, &place, bytes))                                            \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        CUresult answer = CALL_DRIVER(symbol, __VA_ARGS__);                                        \
        pools_end(&growth);                                                                        \
        if (answer == CUDA_SUCCESS)                                                                \
            pools_note(&growth, *pointer);                                                         \
        return answer;                                                                             \
    } while (0)

#define ALLOC_ASYNC(symbol)                                                                        \
    CUresult symbol(CUdeviceptr *pointer, size_t bytes, CUstream stream) {                         \
        ENTER(symbol, pointer, bytes, stream);                                                     \
        struct place place;                                                                        \
        CUmemoryPool pool;                                                                         \
        if (!pointer || !bytes || !stream_pool(stream, &place, &pool))                             \
            return CALL_DRIVER(symbol, pointer, bytes, stream);                                    \
        ALLOCATE(symbol, pointer, bytes, stream);                                                  \
    }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)

#define ALLOC_FROM_POOL(symbol)                                                                    \
    CUresult symbol(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream) {      \
        ENTER(symbol, pointer, bytes, pool, stream);                                               \
        struct place place;                                                                        \
        if (!pointer || !bytes || !pool ||                                                         \
            (!pools_place(pool, &place) && !charge_current(&place)))                               \
            return CALL_DRIVER(symbol, pointer, bytes, pool, stream);                              \
        if (place.device < 0) /* a pool of host memory */                                          \
            return CALL_DRIVER(symbol, pointer, bytes, pool, stream);                              \
        ALLOCATE(symbol, pointer, bytes, pool, stream);                                            \
    }
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync)
ALLOC_FROM_POOL(cuMemAllocFromPoolAsync_ptsz)

#define FREE_ASYNC(symbol)                                                                         \
    CUresult symbol(CUdeviceptr pointer, CUstream stream) {                                        \
        ENTER(symbol, pointer, stream);                                                            \
        struct owned entry;                                                                        \
        bool ours = owned_take(OWNED_LINEAR, pointer, &entry);                                     \
        CUresult answer = CALL_DRIVER(symbol, pointer, stream);                                    \
        if (ours)                                                                                  \
            charge_released(answer, OWNED_LINEAR, pointer, &entry);                                \
        else if (answer == CUDA_SUCCESS)                                                           \
            pools_pointer_freed(pointer);                                                          \
        return answer;                                                                             \
    }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    ENTER(cuMemPoolCreate, pool, properties);
    CUresult answer = CALL_DRIVER(cuMemPoolCreate, pool, properties);
    struct place place;
    if (answer != CUDA_SUCCESS)
        return answer;
    if (!charge_location(&properties->location, properties->allocType, &place)) {
        if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            return answer;
        place = (struct place){.device = -1}; /* host memory: never to be taken for a device's */
    }
    pools_made(*pool, &place);
    return answer;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    ENTER(cuMemPoolDestroy, pool);
    struct pools_end_of end = pools_destroying(pool);
    CUresult answer = CALL_DRIVER(cuMemPoolDestroy, pool);
    pools_destroyed(end, answer);
    return answer;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
    ENTER(cuMemPoolTrimTo, pool, bytes_to_keep);
    CUresult answer = CALL_DRIVER(cuMemPoolTrimTo, pool, bytes_to_keep);
    pools_settle(pool);
    return answer;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    ENTER(cuMemPoolSetAttribute, pool, attribute, value);
    CUresult answer = CALL_DRIVER(cuMemPoolSetAttribute, pool, attribute, value);
    pools_settle(pool);
    return answer;
}

/* Where work is waited for, the driver gives back what pools hold above their threshold. Nothing is
 * done here unless something was freed in stream order since. */
#define SYNCHRONISE(symbol, parameters, ...)                                                       \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, ##__VA_ARGS__);                                                              \
        CUresult answer = CALL_DRIVER(symbol, ##__VA_ARGS__);                                      \
        pools_settle_freed();                                                                      \
        return answer;                                                                             \
    }
SYNCHRONISE(cuStreamSynchronize, (CUstream stream), stream)
SYNCHRONISE(cuStreamSynchronize_ptsz, (CUstream stream), stream)
SYNCHRONISE(cuEventSynchronize, (CUevent event), event)
SYNCHRONISE(cuCtxSynchronize, (void))
