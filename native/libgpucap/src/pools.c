#include "pools.h"

#include "lock.h"
#include "log.h"

#include <string.h>

#define POOLS       1024
#define CHUNK_LEAST (2u << 20)
#define CHUNK_MOST  (64u << 20)

struct pool {
    CUmemoryPool handle; /* NULL: a free entry */
    struct place place;
    uint64_t charged;
    uint64_t chunk; /* the driver lets the pool grow by multiples of about this; learnt */
    bool destroyed; /* its handle is gone; charged for the pointers that are still out */
};

static struct {
    struct lock lock;
    struct pool pools[POOLS];
    int count;
    _Atomic(bool) freed; /* since the last settling */
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
        state.pools[i] = (struct pool){.handle = handle, .place = *place, .chunk = CHUNK_LEAST};
        state.count = i < state.count ? state.count : i + 1;
        return &state.pools[i];
    }
    log_once("more than %d memory pools: those beyond get no memory", POOLS);
    return NULL;
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    uint64_t bytes = 0;
    return CALL_DRIVER(cuMemPoolGetAttribute, pool, which, &bytes) == CUDA_SUCCESS ? bytes : 0;
}

uint64_t pools_used(CUmemoryPool pool) {
    return attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}

/* With the lock: two threads must not write an older figure over a newer one. */
static void settle(struct pool *pool, uint64_t given_back) {
    if (pool->place.device < 0)
        return; /* host memory */
    uint64_t now = attribute(pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    account_settle(pool->place.device, now, pool->charged + given_back);
    pool->charged = now;
}

bool pools_begin(struct growth *growth, CUmemoryPool handle, const struct place *place,
                 uint64_t bytes) {
    *growth = (struct growth){.pool = handle, .place = *place, .bytes = bytes};
    uint64_t reserved = attribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    uint64_t used = attribute(handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    uint64_t idle = reserved > used ? reserved - used : 0, chunk = CHUNK_LEAST;
    lock_take(&state.lock);
    struct pool *pool = find_or_add(handle, place);
    if (pool) {
        growth->place = pool->place;
        chunk = pool->chunk;
    }
    lock_free(&state.lock);
    if (!pool)
        return false; /* nobody would count what it takes */
    if (bytes > idle) {
        uint64_t missing = bytes - idle;
        uint64_t grown =
            missing > UINT64_MAX - chunk ? missing : (missing + chunk - 1) / chunk * chunk;
        if (!charge_reserve(&growth->place, grown))
            return false;
        growth->reserved = grown;
    }
    return true;
}

void pools_end(const struct growth *growth, CUresult answer, const CUdeviceptr *pointer) {
    FAULT(pool_grown);
    lock_take(&state.lock);
    struct pool *pool = find(growth->pool);
    if (pool) {
        uint64_t before = pool->charged;
        settle(pool, growth->reserved);
        uint64_t grown = pool->charged > before ? pool->charged - before : 0;
        if (grown > growth->reserved && growth->bytes < CHUNK_LEAST && grown <= CHUNK_MOST)
            pool->chunk = grown > pool->chunk ? grown : pool->chunk;
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
    for (CUdevice ordinal = 0; ordinal < ACCOUNT_DEVICES; ordinal++) {
        CUmemoryPool own = NULL;
        if (CALL_DRIVER(cuDeviceGetDefaultMemPool, &own, ordinal) != CUDA_SUCCESS)
            return false;
        if (own == handle)
            return charge_ordinal(ordinal, out);
    }
    return false;
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
    state.freed = true;
    lock_take(&state.lock);
    if (!find((CUmemoryPool)(uintptr_t)entry.owner))
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

static void settle_all(const struct place *place) {
    lock_take(&state.lock);
    for (int i = 0; i < state.count; i++) {
        struct pool *pool = &state.pools[i];
        if (pool->handle && !pool->destroyed && (!place || pool->place.device == place->device))
            settle(pool, 0);
    }
    lock_free(&state.lock);
}

void pools_settle_freed(void) {
    if (state.freed) {
        state.freed = false;
        settle_all(NULL);
    }
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
        settle_all(place);
    return graphs_trim(place) || any;
}

void pools_forget(void) {
    memset(&state, 0, sizeof state);
    graphs_forget();
}
