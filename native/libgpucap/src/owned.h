/*
 * What this process owns and will give back: pointers, handles, arrays, contexts, each with the
 * bytes it is charged for. What is not in here is somebody else's, and its release is the driver's
 * affair.
 */
#ifndef GPUCAP_OWNED_H
#define GPUCAP_OWNED_H

#include <stdbool.h>
#include <stdint.h>

enum owned_kind {
    OWNED_LINEAR = 1, /* a device pointer charged by itself */
    OWNED_POOLED,     /* a device pointer from a pool: the pool is charged; owner: the pool */
    OWNED_HANDLE,     /* physical memory of the VMM functions; charged until no one refers to it */
    OWNED_MAPPING,    /* an address at which such memory is mapped; owner: the handle */
    OWNED_ARRAY,
    OWNED_MIPMAP,
    OWNED_CONTEXT,
    OWNED_NODE, /* the address of a memory node of a graph; charged with its graph */
    OWNED_EXEC  /* a graph made ready to run; bytes: the most its nodes hold at one time */
};

struct owned {
    uint64_t bytes;
    uint64_t owner; /* the context it was made in: destroying that frees it; or as said above */
    int device;
    uint32_t references; /* OWNED_HANDLE: handles out, plus mappings */
};

void owned_put(enum owned_kind kind, uint64_t key, struct owned entry);

/* Removes the entry, so that of two releases of one thing only one counts. false: not ours. */
bool owned_take(enum owned_kind kind, uint64_t key, struct owned *out);

bool owned_look_up(enum owned_kind kind, uint64_t key, struct owned *out);

/* Adds to the references; at zero the entry is removed and true returned: give *out back. */
bool owned_refer(enum owned_kind kind, uint64_t key, int by, struct owned *out);

/* Removes one entry of the kind with this owner; false: there is none left. */
bool owned_take_one_of(enum owned_kind kind, uint64_t owner, struct owned *out);

/* How many of the kind there are on the device. */
uint64_t owned_count(enum owned_kind kind, int device);

void owned_forget(void);

#endif
