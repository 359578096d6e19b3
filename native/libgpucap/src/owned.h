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
    OWNED_LINEAR = 1, /* a device pointer charged by itself; target: its number, if it is shared */
    OWNED_POOLED,     /* a device pointer from a pool: the pool is charged; owner: its serial */
    OWNED_HANDLE,     /* physical memory of the VMM functions; charged until no one refers to it;
                       * target: its number, if it is shared; owner: 1 if another process made it */
    OWNED_OPENED,     /* a device pointer by an IPC handle; target: the number of the memory */
    OWNED_MAPPING,    /* an address at which such memory is mapped; owner: the handle */
    OWNED_BOUND,      /* a place in something that it is bound to (bound.c); owner: the handle */
    OWNED_EXPORT,     /* a descriptor for such memory (+ 1), or the byte that it has locked; owner:
                       * its inode; file: a descriptor to look for that lock by; target: the number
                       * of the memory; references: 1 if it is charged for this descriptor alone */
    OWNED_ARRAY,
    OWNED_MIPMAP,
    OWNED_CONTEXT,
    OWNED_MODULE,  /* for its variables; owner: the context */
    OWNED_LIBRARY, /* the same; device -1: no context has it yet, and it is not charged */
    OWNED_LIMIT, /* a context's limit that was raised; owner: the context; references: the KiB that
                  * the driver had set aside for it by itself */
    OWNED_NODE,  /* the address of a memory node of a graph; charged with its graph */
    OWNED_EXEC   /* a graph made ready to run; bytes: the most its nodes hold at one time */
};

struct owned {
    uint64_t bytes;
    uint64_t owner; /* the context it was made in: destroying that frees it; or as said above */
    int device;
    uint32_t references; /* OWNED_HANDLE: handles out, and what else keeps it */
    uint64_t serial;     /* owned_serial() when it was noted, where it is not given;
                          * OWNED_EXPORT: that of the memory */
    uint64_t target;     /* OWNED_BOUND: the serial of what it is bound to; or as said above */
    int file;            /* OWNED_EXPORT */
};

void owned_put(enum owned_kind kind, uint64_t key, struct owned entry);

/* The same; true: it took the place of *old, which the driver had let go before we noted that. */
bool owned_replace(enum owned_kind kind, uint64_t key, struct owned entry, struct owned *old);

/* Grows with each call, so that what was made before can be told from what was made after. */
uint64_t owned_serial(void);

/* Removes the entry, so that of two releases of one thing only one counts. false: not ours. */
bool owned_take(enum owned_kind kind, uint64_t key, struct owned *out);

bool owned_look_up(enum owned_kind kind, uint64_t key, struct owned *out);

/* Sets the target of the entry and what it is charged for, if it is the one with this serial and
 * has no target; false: it is not. */
bool owned_aim(enum owned_kind kind, uint64_t key, uint64_t serial, uint64_t target,
               uint64_t bytes);

/* Removes the entry only if it was made before `serial`. */
bool owned_take_older(enum owned_kind kind, uint64_t key, uint64_t serial, struct owned *out);

/* One reference more, or less if it was made before `serial`; at none the entry stays until
 * owned_end. false: not ours. */
bool owned_raise(enum owned_kind kind, uint64_t key);
bool owned_lower(enum owned_kind kind, uint64_t key, uint64_t serial, struct owned *out);

/* After owned_lower and the driver's release: removes the entry if it is the same and nothing
 * refers to it; true: give it back. */
bool owned_end(enum owned_kind kind, uint64_t key, uint64_t serial);

/* Hands the charge for memory whose last handle is gone to a descriptor that is still out for it;
 * false: there is none, and the memory is free. */
bool owned_pay_by_export(uint64_t serial);

/* The next entry of the kind in no order, from *at on, which begins at 0; false: that was all. */
bool owned_next(enum owned_kind kind, uint64_t *at, uint64_t *key, struct owned *out);

/* Removes all entries of the kind with this owner that were made before `serial`; the bytes of
 * those with less than `limit`, and of the others. */
void owned_take_all_of(enum owned_kind kind, uint64_t owner, uint64_t serial, uint64_t limit,
                       uint64_t *below, uint64_t *others);

/* How many of the kind there are on the device. */
uint64_t owned_count(enum owned_kind kind, int device);

/* The driver was closed: nothing is known by its handles any more. Descriptors are the process's
 * own, and contexts still count. */
void owned_driver_closed(void);

void owned_forget(void);

#endif
