/* What keeps physical memory charged. */
#ifndef GPUCAP_KEEP_H
#define GPUCAP_KEEP_H

#include "functions.h"
#include "owned.h"

#include <stdbool.h>

#define KEEP_EVERY_DEVICE -1

/* A new handle; one of the same number that is still noted was let go before we noted that. */
void keep_made(CUmemGenericAllocationHandle handle, int device, uint64_t bytes);

/* A reference less was noted before the driver's call, for afterwards the handle's number may be
 * that of another thread's new memory. What the memory costs is given back after it. */
void keep_released(CUresult answer, uint64_t handle, const struct owned *memory);

/* Around a call of the driver after which something keeps the memory: it is noted before the call,
 * for another thread may release the handle meanwhile. */
struct keeper {
    CUmemGenericAllocationHandle handle;
    bool ours; /* the memory is charged here */
};
struct keeper keep_begin(CUmemGenericAllocationHandle handle);

/* After it: what keeps it is noted under this kind and key, or it was refused. true: there is one
 * more entry. */
bool keep_end(const struct keeper *keeper, CUresult answer, enum owned_kind kind, uint64_t key,
              struct owned entry);

/* What kept it, so noted, does no more. */
void keep_drop(const struct owned *kept);

/* A descriptor keeps the memory, wherever it is handed on to, and looked at again when memory is
 * short. */
void keep_exported(const void *shareable, CUmemAllocationHandleType type,
                   CUmemGenericAllocationHandle handle);

/* The number of the memory that a descriptor stands for; 0: none of this container's. After an
 * import of it: this process holds it as well. */
uint64_t keep_number_of(int descriptor);
void keep_imported(CUmemGenericAllocationHandle handle, uint64_t number);

/* Gives back what was charged for descriptors that are closed by now; false: nothing. */
bool keep_look_for_closed(void);

/* Memory is bound to the target of an entry, at an offset, after a call as above. */
void keep_bound(const struct keeper *keeper, CUresult answer, const struct owned *entry,
                uint64_t offset);

/* What was bound there before `before` is so no more. */
void keep_unbound(uint64_t target, int device, uint64_t offset, uint64_t bytes, uint64_t before);

/* The object or array with this serial is gone, and with it what was bound to it. */
void keep_target_gone(uint64_t serial);

/* Whether anything may be bound to something. */
bool keep_any_bound(void);

/* This process is a forked child. */
void keep_forget(void);

#endif
