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

struct pool {
    CUmemoryPool handle; /* NULL: a free entry */
    struct place place;
    uint64_t charged;
    uint64_t chunk;    /* the driver lets the pool grow by multiples of about this */
    bool learnt;       /* which was seen, and is no guess */
    uint64_t asked;    /* by calls that are under way */
    uint64_t promised; /* of that: what idle memory is there for; others must not count on it */
    bool freed;        /* something was, and the driver may still give it back */
    bool destroyed;    /* its handle is gone; charged for the pointers that are still out */
};

static struct {
    struct lock lock;
    struct pool pools[POOLS];
    int count;
    uint64_t chunk;      /* what was learnt last, which a new pool begins with; 0: nothing yet */
    _Atomic(bool) freed; /* of some pool */
} state;

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
    for (int i = 0; i < POOLS; i++) {
        if (state.pools[i].handle)
            continue;
        state.pools[i] = (struct pool){
            .handle = handle, .place = *place, .chunk = state.chunk ? state.chunk : CHUNK_USUAL};
        state.count = i < state.count ? state.count : i + 1;
        return &state.pools[i];
    }
    log_once("more than %d memory pools: those beyond get no memory", POOLS);
    return NULL;
}

static bool read_attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *bytes) {
    *bytes = 0;
    return CALL_DRIVER(cuMemPoolGetAttribute, pool, which, bytes) == CUDA_SUCCESS;
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    uint64_t bytes;
    return read_attribute(pool, which, &bytes) ? bytes : 0;
}

/* In whole granules, of which the driver keeps those that are begun. */
static uint64_t in_use(const struct pool *pool) {
    return charge_whole(pools_used(pool->handle), pool->chunk);
}

uint64_t pools_used(CUmemoryPool pool) {
    return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}

/* With the lock: two threads must not write an older figure over a newer one. Idle memory that a
 * call under way counts on stays charged, also if the driver takes it back meanwhile: it grows the
 * pool again for that call. */
static void settle(struct pool *pool, uint64_t given_back) {
    if (pool->place.device < 0)
        return; /* host memory */
    uint64_t now;
    if (!read_attribute(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now))
        now = pool->charged + given_back; /* as if the driver had taken all that it might */
    uint64_t promised = pool->promised ? pools_used(pool->handle) + pool->promised : 0;
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
        uint64_t reserved = attribute(growth->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        uint64_t taken = pools_used(growth->pool) + pool->asked;
        missing = charge_less(bytes, charge_less(reserved, taken));
        growth->had = reserved;
        growth->place = pool->place;
        growth->promised = bytes - missing;
        growth->reserved = missing ? charge_whole(missing, pool->chunk) : 0;
        pool->asked += charge_whole(bytes, CHARGE_SMALL_STEP);
        pool->promised += growth->promised;
    }
    lock_free(&state.lock);
    if (!pool)
        return false; /* nobody would count what it takes */
    if (!missing || charge_reserve(&growth->place, growth->reserved))
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
            return false;
        nanosleep(&pause, NULL); /* what they did not need is idle again */
    }
    return false;
}

/* From a small one, which the driver gives one chunk. What several threads do at a time is a
 * multiple of it, never less. */
static void learn(struct pool *pool, const struct growth *growth) {
    uint64_t now = attribute(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t grown = charge_less(now, growth->had);
    if (!grown || growth->bytes >= CHUNK_LEAST || grown > CHUNK_MOST ||
        (pool->learnt && grown <= pool->chunk))
        return;
    pool->chunk = state.chunk = grown > CHUNK_LEAST ? grown : CHUNK_LEAST;
    pool->learnt = true;
}

void pools_end(const struct growth *growth, CUresult answer, const CUdeviceptr *pointer) {
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
    if (answer == CUDA_SUCCESS)
        owned_put(OWNED_POOLED, *pointer,
                  (struct owned){.bytes = growth->bytes,
                                 .owner = (uint64_t)(uintptr_t)growth->pool,
                                 .device = growth->place.device});
}

void pools_made(CUmemoryPool handle, const struct place *place) {
    lock_take(&state.lock);
    find_or_add(handle, place);
    lock_free(&state.lock);
}

bool pools_place(CUmemoryPool handle, struct place *out) {
    lock_take(&state.lock);
    struct pool *pool = find(handle);
    if (pool)
        *out = pool->place;
    lock_free(&state.lock);
    if (pool)
        return true;
    /* A pool that the program did not make: a device's default one. */
    for (CUdevice ordinal = 0;; ordinal++) {
        CUmemoryPool own = NULL;
        if (CALL_DRIVER(cuDeviceGetDefaultMemPool, &own, ordinal) != CUDA_SUCCESS)
            return false;
        if (own == handle)
            return charge_ordinal(ordinal, out);
    }
}

void pools_destroyed(CUmemoryPool handle, uint64_t still_used) {
    lock_take(&state.lock);
    struct pool *pool = find(handle);
    if (pool && pool->place.device < 0) {
        pool->handle = NULL;
    } else if (pool) {
        account_settle(pool->place.device, still_used, pool->charged);
        pool->charged = still_used;
        pool->destroyed = true;
        if (!still_used)
            pool->handle = NULL;
    }
    lock_free(&state.lock);
}

/* A pointer out of a pool that was destroyed before it: the pool's charge shrinks by it. */
static void freed_from_destroyed(const struct owned *entry) {
    for (int i = 0; i < state.count; i++) {
        struct pool *pool = &state.pools[i];
        if (!pool->destroyed || (uint64_t)(uintptr_t)pool->handle != entry->owner)
            continue;
        uint64_t bytes = entry->bytes < pool->charged ? entry->bytes : pool->charged;
        charge_return(pool->place.device, bytes);
        pool->charged -= bytes;
        if (!pool->charged)
            pool->handle = NULL;
        return;
    }
}

void pools_pointer_freed(CUdeviceptr pointer) {
    struct owned entry;
    if (!owned_take(OWNED_POOLED, pointer, &entry))
        return;
    lock_take(&state.lock);
    struct pool *pool = find((CUmemoryPool)(uintptr_t)entry.owner);
    if (pool)
        state.freed = pool->freed = true;
    else
        freed_from_destroyed(&entry);
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
            uint64_t keeps = attribute(pool->handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
            pool->freed = pool->freed && pool->charged > keeps && pool->charged > in_use(pool);
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
    graphs_settle_device(device);
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
        CALL_DRIVER(cuMemPoolTrimTo, pool, 0); /* without the lock: it may wait for the device */
    if (any)
        settle_all(place->device, false);
    return graphs_trim(place) || any;
}

void pools_forget(void) {
    memset(&state, 0, sizeof state);
    graphs_forget();
}
