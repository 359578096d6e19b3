/*
 * Memory pools: a pool is charged for what it has reserved from the device (the driver's
 * RESERVED_MEM_CURRENT), not for the pointers given out of it, because a pool keeps what is freed.
 * A device's pool for graphs is one of them, though the driver has no handle for it.
 *
 * The driver changes that figure by itself, at a synchronisation most of all; it is read again
 * ("settled") after every call that may have changed it.
 */
#ifndef GPUCAP_POOLS_H
#define GPUCAP_POOLS_H

#include "charge.h"

/* One growth of a pool: what was reserved for it beforehand. */
struct growth {
    CUmemoryPool pool;
    struct place place;
    uint64_t serial;   /* of the pool, whose handle may be that of another one later */
    uint64_t bytes;    /* asked for */
    uint64_t promised; /* of that: what is idle in the pool */
    uint64_t reserved; /* taken from the account for the rest, until the call is over */
    uint64_t had;      /* the pool's reserved memory before it */
};

/* Before an allocation from the pool: takes what it may have to grow by; false: over the cap. */
bool pools_begin(struct growth *growth, CUmemoryPool pool, const struct place *place,
                 uint64_t bytes);

/* After it: charges what the pool did grow by. */
void pools_end(const struct growth *growth);

/* It gave this pointer. */
void pools_note(const struct growth *growth, CUdeviceptr pointer);

/* What stands for the pool that graphs on this device take from. */
CUmemoryPool pools_of_graphs(CUdevice ordinal);

/* A pool was made on this device. */
void pools_made(CUmemoryPool pool, const struct place *place);

/* Before a pool is destroyed: its number, for afterwards the handle may be that of a new one. After
 * it: with memory still out, it is charged until the last pointer is freed. */
struct pools_end_of {
    int number; /* -1: it is not known */
    uint64_t still_used;
};
struct pools_end_of pools_destroying(CUmemoryPool pool);
void pools_destroyed(struct pools_end_of end, CUresult answer);

/* The device that pays for a pool; false: unknown, and the current context's is as good as any. */
bool pools_place(CUmemoryPool pool, struct place *out);

/* Something freed memory in stream order; what it gave back is settled at the next synchronisation.
 */
void pools_pointer_freed(CUdeviceptr pointer);
void pools_settle(CUmemoryPool pool);
void pools_settle_freed(void);

/* A context of the device is gone, and what its pools held may be as well. */
void pools_settle_device(int device);

/* Makes the device's pools give idle memory back; false: none did. */
bool pools_trim(const struct place *place);

void pools_forget(void);

/* The driver was closed: what its pools are charged for stays so. */
void pools_driver_closed(void);

#endif
