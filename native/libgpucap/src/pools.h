/*
 * Memory pools: a pool is charged for what it has reserved from the device (the driver's
 * RESERVED_MEM_CURRENT), not for the pointers given out of it, because a pool keeps what is freed.
 * The device's pool for graphs is one of them in all but name (graphs.c).
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
    uint64_t bytes;    /* asked for */
    uint64_t promised; /* of that: what is idle in the pool */
    uint64_t reserved; /* taken from the account for the rest, until the call is over */
    uint64_t had;      /* the pool's reserved memory before it */
};

/* Before an allocation from the pool: takes what it may have to grow by; false: over the cap. */
bool pools_begin(struct growth *growth, CUmemoryPool pool, const struct place *place,
                 uint64_t bytes);

/* After it: charges what the pool did grow by, and notes the pointer. */
void pools_end(const struct growth *growth, CUresult answer, const CUdeviceptr *pointer);

/* A pool was made on this device, or is about to be destroyed: with memory still out, it is charged
 * until the last pointer is freed. */
void pools_made(CUmemoryPool pool, const struct place *place);
void pools_destroyed(CUmemoryPool pool, uint64_t still_used);
uint64_t pools_used(CUmemoryPool pool);

/* The device that pays for a pool; false: unknown, and the current context's is as good as any. */
bool pools_place(CUmemoryPool pool, struct place *out);

/* Something freed memory in stream order; what it gave back is settled at the next synchronisation.
 */
void pools_pointer_freed(CUdeviceptr pointer);
void pools_settle(CUmemoryPool pool);
void pools_settle_freed(void);

/* A context of the device is gone, and what its pools held may be as well; graphs' among it. */
void pools_settle_device(int device);

/* Makes the device's pools give idle memory back; false: none did. */
bool pools_trim(const struct place *place);

void pools_forget(void);

/* graphs.c: the same for the device's graph pool. */
bool graphs_trim(const struct place *place);
void graphs_settle_device(int device);
void graphs_forget(void);

#endif
