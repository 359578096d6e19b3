/*
 * Contexts: what one costs is known only to NVML, so each is charged a fixed reserve when it is
 * made, in the ledger's context_bytes, which the agent soon replaces by what it measures.
 * Destroying a context frees what was allocated in it.
 */
#include "charge.h"
#include "limit.h"

/* Takes the reserve; false: the container cannot hold one more context. `bytes` is 0 where no
 * charge is possible and the driver alone answers. */
static bool begin(CUdevice ordinal, struct place *place, uint64_t *bytes) {
    *bytes = 0;
    if (!charge_ordinal(ordinal, place))
        return true;
    *bytes = limit_context_bytes();
    return account_take(place->device, ACCOUNT_CONTEXT, *bytes);
}

static CUresult end(CUresult answer, const struct place *place, uint64_t bytes, CUcontext *made) {
    if (bytes && answer != CUDA_SUCCESS)
        account_give(place->device, ACCOUNT_CONTEXT, bytes);
    else if (bytes)
        owned_put(OWNED_CONTEXT, (uint64_t)(uintptr_t)*made,
                  (struct owned){.bytes = bytes, .device = place->device});
    return answer;
}

static void free_all(enum owned_kind kind, uint64_t context) {
    struct owned entry;
    while (owned_take_one_of(kind, context, &entry))
        charge_return(entry.device, entry.bytes);
}

/* The context is gone, and with it all that was allocated in it. */
static void gone(uint64_t context, const struct owned *entry) {
    free_all(OWNED_LINEAR, context);
    free_all(OWNED_ARRAY, context);
    free_all(OWNED_MIPMAP, context);
    bool last = owned_count(OWNED_CONTEXT, entry->device) == 0;
    account_give(entry->device, ACCOUNT_CONTEXT, last ? UINT64_MAX : entry->bytes);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ENTER(cuDevicePrimaryCtxRetain, context, device);
    unsigned int flags;
    int active = 0;
    /* It is made by the first retain only; the driver counts the others. */
    CALL_DRIVER(cuDevicePrimaryCtxGetState, device, &flags, &active);
    struct place place;
    uint64_t bytes = 0;
    if (!active && context && !begin(device, &place, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuDevicePrimaryCtxRetain, context, device);
    struct owned known;
    if (bytes && answer == CUDA_SUCCESS &&
        owned_look_up(OWNED_CONTEXT, (uint64_t)(uintptr_t)*context, &known)) {
        account_give(place.device, ACCOUNT_CONTEXT, bytes); /* another thread was first */
        bytes = 0;
    }
    return end(answer, &place, bytes, context);
}

/* Finds the handle of the primary context by its device: only one of the process's contexts there
 * is the one that Retain gives. */
static CUcontext primary(CUdevice device) {
    unsigned int flags;
    int active = 0;
    CUcontext context = NULL;
    CALL_DRIVER(cuDevicePrimaryCtxGetState, device, &flags, &active);
    if (active && CALL_DRIVER(cuDevicePrimaryCtxRetain, &context, device) == CUDA_SUCCESS)
        CALL_DRIVER(cuDevicePrimaryCtxRelease_v2, device);
    return context;
}

static void check_primary(CUdevice device, CUcontext before, bool reset) {
    unsigned int flags;
    int active = 0;
    struct owned entry;
    CALL_DRIVER(cuDevicePrimaryCtxGetState, device, &flags, &active);
    uint64_t key = (uint64_t)(uintptr_t)before;
    if (before && (reset || !active) && owned_take(OWNED_CONTEXT, key, &entry))
        gone(key, &entry);
}

#define RELEASE(symbol, reset)                                                                     \
    CUresult symbol(CUdevice device) {                                                             \
        ENTER(symbol, device);                                                                     \
        CUcontext before = primary(device);                                                        \
        CUresult answer = CALL_DRIVER(symbol, device);                                             \
        if (answer == CUDA_SUCCESS)                                                                \
            check_primary(device, before, reset);                                                  \
        return answer;                                                                             \
    }
RELEASE(cuDevicePrimaryCtxRelease, false)
RELEASE(cuDevicePrimaryCtxRelease_v2, false)
RELEASE(cuDevicePrimaryCtxReset, true)
RELEASE(cuDevicePrimaryCtxReset_v2, true)

#define CREATE(symbol, parameters, ...)                                                            \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        struct place place;                                                                        \
        uint64_t bytes = 0;                                                                        \
        if (context && !begin(device, &place, &bytes))                                             \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        return end(CALL_DRIVER(symbol, __VA_ARGS__), &place, bytes, context);                      \
    }
CREATE(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device), context, flags,
       device)
CREATE(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device), context, flags,
       device)
CREATE(cuCtxCreate_v3,
       (CUcontext * context, CUexecAffinityParam *affinity, int count, unsigned int flags,
        CUdevice device),
       context, affinity, count, flags, device)
CREATE(cuCtxCreate_v4,
       (CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice device),
       context, params, flags, device)

#define DESTROY(symbol)                                                                            \
    CUresult symbol(CUcontext context) {                                                           \
        ENTER(symbol, context);                                                                    \
        struct owned entry;                                                                        \
        uint64_t key = (uint64_t)(uintptr_t)context;                                               \
        bool ours = owned_take(OWNED_CONTEXT, key, &entry);                                        \
        CUresult answer = CALL_DRIVER(symbol, context);                                            \
        if (ours && answer != CUDA_SUCCESS)                                                        \
            owned_put(OWNED_CONTEXT, key, entry);                                                  \
        else if (ours)                                                                             \
            gone(key, &entry);                                                                     \
        return answer;                                                                             \
    }
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)
