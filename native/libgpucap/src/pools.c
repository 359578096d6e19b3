#include "pools.h"

#include "lock.h"
#include "log.h"

#include <string.h>
#include <time.h>

#define POOLS            1024
#define CHUNK_LEAST      (2u << 20)
#define CHUNK_MOST       (64u << 20)
#define CHUNK_USUAL      (32u << 20)
#define WAITS_FOR_OTHERS 1000
#define DEFAULT_POOLS    64 /* of one kind of location that are looked at */

struct pool {
    CUmemoryPool handle; /* NULL: a free entry */
    uint64_t serial;     /* which no other pool ever has */
    struct place place;
    uint64_t charged;
    uint64_t chunk;    /* the driver lets the pool grow by multiples of about this */
    bool learnt;       /* which was seen, and is no guess */
    uint64_t asked;    /* by calls that are under way */
    uint64_t promised; /* of that: what idle memory is there for; others must not count on it */
    bool freed;        /* something was, and the driver may still give it back */
    bool destroyed;    /* its handle is gone; charged for the pointers that are still out */
    uint64_t left;     /* the bytes of those */
};

static struct {
    struct lock lock;
    struct pool pools[POOLS];
    int count;
    uint64_t chunk;      /* what was learnt last, which a new pool begins with; 0: nothing yet */
    _Atomic(bool) freed; /* of some pool */
} state;

/* Handles of the driver are addresses: none is so low. */
CUmemoryPool pools_of_graphs(CUdevice ordinal) {
    return (CUmemoryPool)(uintptr_t)(ordinal + 1);
}

static bool is_of_graphs(CUmemoryPool handle, CUdevice *ordinal) {
    *ordinal = (CUdevice)((uintptr_t)handle - 1);
    return handle && (uintptr_t)handle <= CHARGE_ORDINALS;
}

static struct pool *find(CUmemoryPool handle) {
    for (int i = 0; i < state.count; i++)
        if (state.pools[i].handle == handle && !state.pools[i].destroyed)
            return &state.pools[i];
    return NULL;
}

static struct pool *find_or_add(CUmemoryPool handle, const struct place *place) {
    struct pool *pool = find(handle);
    if (pool)
        return pool;
    CUdevice ordinal;
    uint64_t chunk = is_of_graphs(handle, &ordinal) ? CHUNK_LEAST
                     : state.chunk                  ? state.chunk
                                                    : CHUNK_USUAL;
    for (int i = 0; i < POOLS; i++) {
        if (state.pools[i].handle)
            continue;
        state.pools[i] = (struct pool){
            .handle = handle, .serial = owned_serial(), .place = *place, .chunk = chunk};
        state.count = i < state.count ? state.count : i + 1;
        return &state.pools[i];
    }
    log_once("more than %d memory pools: those beyond get no memory", POOLS);
    return NULL;
}

static bool read_reserved(CUmemoryPool pool, uint64_t *bytes) {
    CUdevice ordinal;
    *bytes = 0;
    if (is_of_graphs(pool, &ordinal))
        return CALL_DRIVER(cuDeviceGetGraphMemAttribute, ordinal,
                           CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, bytes) == CUDA_SUCCESS;
    return CALL_DRIVER(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, bytes) ==
           CUDA_SUCCESS;
}

static uint64_t reserved(CUmemoryPool pool) {
    uint64_t bytes;
    return read_reserved(pool, &bytes) ? bytes : 0;
}

static uint64_t used(CUmemoryPool pool) {
    CUdevice ordinal;
    uint64_t bytes = 0;
    CUresult answer =
        is_of_graphs(pool, &ordinal)
            ? CALL_DRIVER(cuDeviceGetGraphMemAttribute, ordinal, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                          &bytes)
            : CALL_DRIVER(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes);
    return answer == CUDA_SUCCESS ? bytes : 0;
}

/* What it keeps when it is freed. */
static uint64_t threshold(CUmemoryPool pool) {
    uint64_t bytes = 0;
    CALL_DRIVER(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
    return bytes;
}

static void trim(CUmemoryPool pool) {
    CUdevice ordinal;
    if (is_of_graphs(pool, &ordinal))
        CALL_DRIVER(cuDeviceGraphMemTrim, ordinal);
    else
        CALL_DRIVER(cuMemPoolTrimTo, pool, 0);
}

/* In whole chunks, of which the driver keeps those that are begun. */
static uint64_t in_use(const struct pool *pool, uint64_t more) {
    return charge_whole(used(pool->handle) + more, pool->chunk);
}

/* With the lock: two threads must not write an older figure over a newer one. Idle memory that a
 * call under way counts on stays charged, also if the driver takes it back meanwhile: it grows the
 * pool again for that call. */
static void settle(struct pool *pool, uint64_t given_back) {
    if (pool->place.device < 0)
        return; /* host memory */
    uint64_t now;
    if (!read_reserved(pool->handle, &now))
        now = pool->charged + given_back; /* as if the driver had taken all that it might */
    uint64_t promised = pool->promised ? in_use(pool, pool->promised) : 0;
    now = now > promised ? now : promised;
    account_settle(pool->place.device, now, pool->charged + given_back);
    pool->charged = now;
}

/* The call has its answer, or is not made. It may be another pool by now. */
static void answered(struct pool *pool, const struct growth *growth) {
    pool->asked = charge_less(pool->asked, charge_whole(growth->bytes, CHARGE_SMALL_STEP));
    pool->promised = charge_less(pool->promised, growth->promised);
}

/* Takes what the pool may have to grow by. Idle memory counts once: what calls of other threads
 * that are under way have asked for is theirs. false: over the cap; *others: but for them it might
 * fit. */
static bool take(struct growth *growth, bool *others) {
    uint64_t bytes = growth->bytes, missing = 0;
    lock_take(&state.lock);
    struct pool *pool = find_or_add(growth->pool, &growth->place);
    *others = pool && pool->asked;
    if (pool) {
        /* With the lock: what a call has got is in use before it ceases to be asked for. */
        growth->serial = pool->serial;
        growth->had = reserved(growth->pool);
        uint64_t taken = used(growth->pool) + pool->asked;
        missing = charge_less(bytes, charge_less(growth->had, taken));
        growth->place = pool->place;
        growth->promised = bytes - missing;
        growth->reserved = missing ? charge_whole(missing, pool->chunk) : 0;
        pool->asked += charge_whole(bytes, CHARGE_SMALL_STEP);
        pool->promised += growth->promised;
    }
    lock_free(&state.lock);
    if (!pool)
        return false; /* nobody would count what it takes */
    if (!missing || charge_try(&growth->place, growth->reserved))
        return true;
    lock_take(&state.lock);
    if ((pool = find(growth->pool)))
        answered(pool, growth);
    lock_free(&state.lock);
    return false;
}

bool pools_begin(struct growth *growth, CUmemoryPool handle, const struct place *place,
                 uint64_t bytes) {
    static const struct timespec pause = {.tv_nsec = 100000};
    bool others;
    for (int i = 0; i < WAITS_FOR_OTHERS; i++) {
        *growth = (struct growth){.pool = handle, .place = *place, .bytes = bytes};
        if (take(growth, &others))
            return true;
        if (!others)
            break;
        nanosleep(&pause, NULL); /* what they did not need is idle again */
    }
    account_refused(place->device);
    return false;
}

/* From a small one, which the driver gives one chunk. What several threads do at a time is a
 * multiple of it, never less. */
static void learn(struct pool *pool, const struct growth *growth) {
    CUdevice ordinal;
    uint64_t grown = charge_less(reserved(pool->handle), growth->had);
    if (is_of_graphs(pool->handle, &ordinal) || !grown || growth->bytes >= CHUNK_LEAST ||
        grown > CHUNK_MOST || (pool->learnt && grown <= pool->chunk))
        return;
    pool->chunk = state.chunk = grown > CHUNK_LEAST ? grown : CHUNK_LEAST;
    pool->learnt = true;
}

void pools_end(const struct growth *growth) {
    FAULT(pool_grown);
    lock_take(&state.lock);
    struct pool *pool = find(growth->pool);
    if (pool) {
        answered(pool, growth);
        settle(pool, growth->reserved);
        if (growth->reserved)
            learn(pool, growth);
    } else {
        charge_return(growth->place.device, growth->reserved);
    }
    lock_free(&state.lock);
}

void pools_note(const struct growth *growth, CUdeviceptr pointer) {
    owned_put(OWNED_POOLED, pointer,
              (struct owned){
                  .bytes = growth->bytes, .owner = growth->serial, .device = growth->place.device});
}

void pools_made(CUmemoryPool handle, const struct place *place) {
    lock_take(&state.lock);
    find_or_add(handle, place);
    lock_free(&state.lock);
}

/* Whether it is the default pool for memory of this type at such a location. The id counts up, by
 * `step` from the first one, as far as the driver has such locations. */
static bool is_default(CUmemoryPool handle, CUmemLocation *location, CUmemAllocationType type,
                       int step) {
    CUmemoryPool own = NULL;
    while (CALL_DRIVER(cuMemGetDefaultMemPool, &own, location, type) == CUDA_SUCCESS) {
        if (own == handle)
            return true;
        if (!step || location->id > DEFAULT_POOLS * step)
            break;
        location->id += step;
    }
    return false;
}

/* Where the memory of a pool is that the program did not make; false: nobody knows. */
static bool place_of_default(CUmemoryPool handle, struct place *out) {
    static const struct {
        CUmemLocationType location;
        CUmemAllocationType type;
        int step;
    } kinds[] = {{CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ALLOCATION_TYPE_PINNED, 0},
                 {CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_ALLOCATION_TYPE_PINNED, 1},
                 {CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ALLOCATION_TYPE_MANAGED, 1}};
    CUmemoryPool own;
    for (CUdevice ordinal = 0;
         CALL_DRIVER(cuDeviceGetDefaultMemPool, &own, ordinal) == CUDA_SUCCESS; ordinal++) {
        CUmemLocation part = {.type = CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, .id = ordinal};
        if (own == handle || is_default(handle, &part, CU_MEM_ALLOCATION_TYPE_PINNED, 1 << 8))
            return charge_ordinal(ordinal, out);
    }
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        CUmemLocation location = {.type = kinds[i].location};
        if (!is_default(handle, &location, kinds[i].type, kinds[i].step))
            continue;
        if (!charge_location(&location, kinds[i].type, out))
            *out = (struct place){.device = -1}; /* the machine's memory */
        return true;
    }
    return false;
}

bool pools_place(CUmemoryPool handle, struct place *out) {
    lock_take(&state.lock);
    struct pool *pool = find(handle);
    if (pool)
        *out = pool->place;
    lock_free(&state.lock);
    if (pool)
        return true;
    if (!place_of_default(handle, out))
        return false;
    pools_made(handle, out);
    return true;
}

struct pools_end_of pools_destroying(CUmemoryPool handle) {
    struct pools_end_of end = {.number = -1};
    lock_take(&state.lock);
    struct pool *pool = handle ? find(handle) : NULL;
    if (pool) {
        end.number = (int)(pool - state.pools);
        end.still_used = used(handle);
        pool->destroyed = true;
    }
    lock_free(&state.lock);
    return end;
}

/* The driver cannot be asked about it any more. */
static void settle_destroyed(struct pool *pool) {
    uint64_t now = charge_whole(pool->left, pool->chunk);
    account_settle(pool->place.device, now, pool->charged);
    pool->charged = now;
    if (!now)
        pool->handle = NULL;
}

void pools_destroyed(struct pools_end_of end, CUresult answer) {
    if (end.number < 0)
        return;
    lock_take(&state.lock);
    struct pool *pool = &state.pools[end.number];
    if (answer != CUDA_SUCCESS) {
        pool->destroyed = false;
    } else if (pool->place.device < 0) {
        pool->handle = NULL;
    } else {
        pool->left = end.still_used;
        settle_destroyed(pool);
    }
    lock_free(&state.lock);
}

void pools_pointer_freed(CUdeviceptr pointer) {
    struct owned entry;
    if (!owned_take(OWNED_POOLED, pointer, &entry))
        return;
    lock_take(&state.lock);
    int i = 0;
    while (i < state.count && (!state.pools[i].handle || state.pools[i].serial != entry.owner))
        i++;
    struct pool *pool = i < state.count ? &state.pools[i] : NULL;
    if (pool && pool->destroyed) {
        pool->left = charge_less(pool->left, charge_whole(entry.bytes, CHARGE_SMALL_STEP));
        settle_destroyed(pool);
    } else if (pool) {
        state.freed = pool->freed = true;
    }
    lock_free(&state.lock);
}

void pools_settle(CUmemoryPool handle) {
    lock_take(&state.lock);
    struct pool *pool = find(handle);
    if (pool)
        settle(pool, 0);
    lock_free(&state.lock);
}

/* All pools of the device, or of all devices (-1). */
static void settle_all(int device, bool freed_only) {
    bool more = false;
    lock_take(&state.lock);
    for (int i = 0; i < state.count; i++) {
        struct pool *pool = &state.pools[i];
        bool wanted = (device < 0 || pool->place.device == device) && (!freed_only || pool->freed);
        if (pool->handle && !pool->destroyed && wanted) {
            settle(pool, 0);
            /* It was not this stream that the memory was freed in, perhaps: the driver gives back
             * what is idle above the threshold when that one is waited for. */
            pool->freed = pool->freed && pool->charged > threshold(pool->handle) &&
                          pool->charged > in_use(pool, 0);
        }
        more |= pool->handle && !pool->destroyed && pool->freed;
    }
    state.freed = more;
    lock_free(&state.lock);
}

void pools_settle_freed(void) {
    if (state.freed)
        settle_all(-1, true);
}

void pools_settle_device(int device) {
    settle_all(device, false);
}

/* The next pool on the device that holds memory, from `*at` on; NULL: there is none. */
static CUmemoryPool next_charged(const struct place *place, int *at) {
    CUmemoryPool found = NULL;
    lock_take(&state.lock);
    while (!found && *at < state.count) {
        struct pool *pool = &state.pools[(*at)++];
        if (!pool->destroyed && pool->charged && pool->place.device == place->device)
            found = pool->handle;
    }
    lock_free(&state.lock);
    return found;
}

bool pools_trim(const struct place *place) {
    CUmemoryPool pool;
    bool any = false;
    for (int at = 0; (pool = next_charged(place, &at)); any = true)
        trim(pool); /* without the lock: it may wait for the device */
    if (any)
        settle_all(place->device, false);
    return any;
}

void pools_forget(void) {
    memset(&state, 0, sizeof state);
}

void pools_driver_closed(void) {
    lock_take(&state.lock);
    memset(state.pools, 0, sizeof state.pools);
    state.count = 0;
    state.freed = false;
    lock_free(&state.lock);
}
