/*
 * Contexts: what one costs is known only to NVML, so each is charged a fixed reserve when it is
 * made, in the ledger's context_bytes, which the agent soon replaces by what it measures.
 * Destroying a context frees what was allocated in it.
 */
#include "contexts.h"

#include "bound.h"
#include "charge.h"
#include "ipc.h"
#include "limit.h"
#include "lock.h"
#include "modules.h"
#include "pools.h"

#include <string.h>

struct reserve {
    struct place place; /* device -1: nothing was taken, and the driver alone answers */
    uint64_t bytes;
    uint64_t most; /* that it may turn out to take beyond that, and it is our turn; 0: known */
    bool primary;
    uint64_t libraries; /* what those that are loaded already take of it */
};

static const struct reserve nothing = {.place = {.device = -1}};

static struct {
    struct lock lock;
    struct lock turn;            /* of the threads to make a context that nobody has measured */
    int making[ACCOUNT_NUMBERS]; /* reserves of contexts that are not in the table yet */
} state;

void contexts_forget(void) {
    memset(&state, 0, sizeof state);
}

static bool take(int device, uint64_t bytes) {
    lock_take(&state.lock);
    bool taken = account_take(device, ACCOUNT_CONTEXT, bytes);
    state.making[device] += taken;
    lock_free(&state.lock);
    return taken;
}

/* It is in the table from now on; true: in the place of *old. */
static bool noted(uint64_t key, struct owned entry, struct owned *old) {
    lock_take(&state.lock);
    bool replaced = owned_replace(OWNED_CONTEXT, key, entry, old);
    state.making[entry.device]--;
    lock_free(&state.lock);
    return replaced;
}

/* There is none. */
static void gave_up(int device, uint64_t bytes) {
    lock_take(&state.lock);
    state.making[device]--;
    account_give(device, ACCOUNT_CONTEXT, bytes);
    lock_free(&state.lock);
}

/* With the last one goes whatever the agent has measured for all. */
static void give(int device, uint64_t bytes) {
    lock_take(&state.lock);
    bool last = !state.making[device] && owned_count(OWNED_CONTEXT, device) == 0;
    account_give(device, ACCOUNT_CONTEXT, last ? UINT64_MAX : bytes);
    lock_free(&state.lock);
}

static void look_up(struct reserve *reserve) {
    int device = reserve->place.device;
    reserve->bytes = limit_context_bytes(account_context(device), &reserve->most);
}

static void turn_over(struct reserve *reserve) {
    if (!reserve->most)
        return;
    reserve->most = 0;
    account_turn_over(reserve->place.device);
    lock_free(&state.turn);
}

/* Where nobody has measured a context on this device, one is made at a time: the next one is
 * charged what this one takes. Who waits in vain is charged the most that one may take. */
static void wait_for_turn(struct reserve *reserve) {
    look_up(reserve);
    if (!reserve->most)
        return;
    lock_take(&state.turn);
    bool ours = account_turn(reserve->place.device);
    look_up(reserve);
    if (!ours) {
        reserve->bytes += reserve->most;
        reserve->most = 0;
        lock_free(&state.turn);
    } else if (!reserve->most) {
        account_turn_over(reserve->place.device);
        lock_free(&state.turn);
    }
}

/* Takes the reserve; false: the container cannot hold one more context. */
static bool begin(CUdevice ordinal, struct reserve *reserve) {
    *reserve = nothing;
    struct place place;
    if (!charge_ordinal(ordinal, &place))
        return true;
    *reserve = (struct reserve){.place = place};
    wait_for_turn(reserve);
    bool taken = take(place.device, reserve->bytes);
    if (taken) {
        reserve->libraries = modules_pending();
        if (!reserve->libraries || charge_reserve(&place, reserve->libraries))
            return true;
        gave_up(place.device, reserve->bytes);
    } else {
        account_refused(place.device);
    }
    turn_over(reserve);
    return false;
}

/* The context is gone, and with it all that was allocated in it. By then its number may be that of
 * a new one: what was made after `serial` is in that. */
static void gone(uint64_t context, const struct owned *entry, uint64_t serial) {
    static const enum owned_kind kinds[] = {OWNED_LINEAR, OWNED_ARRAY, OWNED_MIPMAP, OWNED_LIMIT,
                                            OWNED_MODULE};
    bound_context_gone(context, serial);
    ipc_context_gone(context, serial);
    modules_context_gone(context, serial);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        charge_return_context(kinds[i], context, entry->device, serial);
    pools_settle_device(entry->device);
    give(entry->device, entry->bytes);
}

/* Where nobody has measured a context on this device, what it took is asked now that one is there:
 * before, the driver tells nothing. *bytes: what it is charged. false: there is no room for it. */
static bool has_room(const struct reserve *reserve, CUcontext context, uint64_t *bytes) {
    CUcontext popped;
    size_t left = 0, total = 0;
    if (!reserve->most || CALL_DRIVER(cuCtxPushCurrent_v2, context) != CUDA_SUCCESS)
        return true;
    CUresult answer = CALL_DRIVER(cuMemGetInfo_v2, &left, &total);
    CALL_DRIVER(cuCtxPopCurrent_v2, &popped);
    if (answer != CUDA_SUCCESS || left > total)
        return true;
    int device = reserve->place.device;
    bool room = account_measured(device, total - left, reserve->most, bytes);
    limit_say_context(*bytes);
    return room;
}

static CUresult undo(const struct reserve *reserve, CUcontext *context) {
    if (reserve->primary)
        CALL_DRIVER(cuDevicePrimaryCtxRelease_v2, reserve->place.ordinal);
    else
        CALL_DRIVER(cuCtxDestroy_v2, *context);
    *context = NULL;
    account_refused(reserve->place.device);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* A context that costs nothing is noted as well: what is allocated in it goes with it. */
static CUresult end(CUresult answer, struct reserve *reserve, CUcontext *context) {
    int device = reserve->place.device;
    if (device < 0)
        return answer;
    struct owned old;
    struct owned entry = {.bytes = reserve->bytes, .device = device, .serial = owned_serial()};
    if (answer == CUDA_SUCCESS && !has_room(reserve, *context, &entry.bytes))
        answer = undo(reserve, context);
    uint64_t key = (uint64_t)(uintptr_t)*context;
    if (answer != CUDA_SUCCESS)
        gave_up(device, reserve->bytes);
    else if (noted(key, entry, &old))
        gone(key, &old, entry.serial);
    uint64_t libraries = answer == CUDA_SUCCESS ? modules_adopted(key, device) : 0;
    account_settle(device, libraries, reserve->libraries);
    turn_over(reserve);
    return answer;
}

#define KIB    1024u
#define LIMITS 16 /* more than there are */

/* Device memory that a limit of a context lets the driver set aside for kernels. */
static uint64_t limit_cost(const struct place *place, int limit, uint64_t value) {
    int processors = 1, threads = 1;
    switch (limit) {
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        return value;
    case CU_LIMIT_STACK_SIZE: /* of every thread that the device can run at a time */
        CALL_DRIVER(cuDeviceGetAttribute, &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                    place->ordinal);
        CALL_DRIVER(cuDeviceGetAttribute, &threads,
                    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, place->ordinal);
        return charge_product(value, (uint64_t)processors * (uint64_t)threads);
    default:
        return 0;
    }
}

static uint32_t in_kib(uint64_t bytes) {
    return bytes / KIB < UINT32_MAX ? (uint32_t)(bytes / KIB) : UINT32_MAX;
}

/* What is noted of this context's limit: an entry of an earlier context with its number is not. */
static bool take_limit(uint64_t key, const struct place *place, struct owned *entry) {
    struct owned context = {0};
    owned_look_up(OWNED_CONTEXT, place->context, &context);
    if (!owned_take(OWNED_LIMIT, key, entry))
        return false;
    if (entry->serial > context.serial)
        return true;
    charge_return(place->device, entry->bytes);
    return false;
}

/* The driver takes the memory when a kernel needs it, which no call tells: it is charged from the
 * moment the limit is raised, until it is lowered or the context gone. What a context has by itself
 * is part of its reserve. */
CUresult cuCtxSetLimit(int limit, size_t value) {
    ENTER(cuCtxSetLimit, limit, value);
    struct place place;
    size_t before = 0;
    if (limit < 0 || limit >= LIMITS || !charge_current(&place))
        return CALL_DRIVER(cuCtxSetLimit, limit, value);
    CUresult known = CALL_DRIVER(cuCtxGetLimit, &before, limit);
    if (known != CUDA_SUCCESS)
        return known; /* what it adds could not be told */
    uint64_t key = place.context * LIMITS + (uint64_t)limit;
    struct owned entry;
    if (!take_limit(key, &place, &entry))
        entry = (struct owned){.owner = place.context,
                               .device = place.device,
                               .references = in_kib(limit_cost(&place, limit, before))};
    uint64_t have = entry.bytes;
    uint64_t want = charge_less(limit_cost(&place, limit, value), entry.references * KIB);
    if (want > have && !charge_reserve(&place, want - have)) {
        owned_put(OWNED_LIMIT, key, entry);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult answer = CALL_DRIVER(cuCtxSetLimit, limit, value);
    entry.bytes = answer == CUDA_SUCCESS ? want : have;
    uint64_t taken = want > have ? want : have;
    charge_return(place.device, taken - entry.bytes);
    owned_put(OWNED_LIMIT, key, entry);
    return answer;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ENTER(cuDevicePrimaryCtxRetain, context, device);
    unsigned int flags;
    int active = 0;
    uint64_t serial = owned_serial();
    /* It is made by the first retain only; the driver counts the others. */
    CALL_DRIVER(cuDevicePrimaryCtxGetState, device, &flags, &active);
    struct reserve reserve = nothing;
    if (!active && context && !begin(device, &reserve))
        return CUDA_ERROR_OUT_OF_MEMORY;
    reserve.primary = true;
    CUresult answer = CALL_DRIVER(cuDevicePrimaryCtxRetain, context, device);
    struct owned known;
    if (reserve.place.device >= 0 && answer == CUDA_SUCCESS &&
        owned_look_up(OWNED_CONTEXT, (uint64_t)(uintptr_t)*context, &known) &&
        known.serial > serial) {
        gave_up(reserve.place.device, reserve.bytes);
        charge_return(reserve.place.device, reserve.libraries);
        turn_over(&reserve);
        reserve = nothing; /* another thread was first */
    }
    return end(answer, &reserve, context);
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

static void check_primary(CUdevice device, CUcontext before, uint64_t serial, bool reset) {
    unsigned int flags;
    int active = 0;
    struct owned entry;
    CALL_DRIVER(cuDevicePrimaryCtxGetState, device, &flags, &active);
    uint64_t key = (uint64_t)(uintptr_t)before;
    if (before && (reset || !active) && owned_take_older(OWNED_CONTEXT, key, serial, &entry))
        gone(key, &entry, serial);
}

#define RELEASE(symbol, reset)                                                                     \
    CUresult symbol(CUdevice device) {                                                             \
        ENTER(symbol, device);                                                                     \
        CUcontext before = primary(device);                                                        \
        uint64_t serial = owned_serial();                                                          \
        CUresult answer = CALL_DRIVER(symbol, device);                                             \
        if (answer == CUDA_SUCCESS)                                                                \
            check_primary(device, before, serial, reset);                                          \
        return answer;                                                                             \
    }
RELEASE(cuDevicePrimaryCtxRelease, false)
RELEASE(cuDevicePrimaryCtxRelease_v2, false)
RELEASE(cuDevicePrimaryCtxReset, true)
RELEASE(cuDevicePrimaryCtxReset_v2, true)

#define CREATE(symbol, parameters, ...)                                                            \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        struct reserve reserve = nothing;                                                          \
        if (context && !begin(device, &reserve))                                                   \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        return end(CALL_DRIVER(symbol, __VA_ARGS__), &reserve, context);                           \
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
        uint64_t serial = owned_serial();                                                          \
        bool ours = owned_take(OWNED_CONTEXT, key, &entry);                                        \
        CUresult answer = CALL_DRIVER(symbol, context);                                            \
        if (ours && answer != CUDA_SUCCESS)                                                        \
            owned_put(OWNED_CONTEXT, key, entry);                                                  \
        else if (ours)                                                                             \
            gone(key, &entry, serial);                                                             \
        return answer;                                                                             \
    }
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)
