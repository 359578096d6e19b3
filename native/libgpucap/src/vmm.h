/* Physical memory, and what keeps it besides its handles. */
#ifndef GPUCAP_VMM_H
#define GPUCAP_VMM_H

#include "functions.h"
#include "owned.h"

#include <stdbool.h>

/* Around a call of the driver after which something keeps the memory: it is noted before the call,
 * for another thread may release the handle meanwhile. */
struct vmm_keeper {
    CUmemGenericAllocationHandle handle;
    bool ours; /* the memory is charged here */
};
struct vmm_keeper vmm_keep(CUmemGenericAllocationHandle handle);

/* After it: what keeps it is noted under this kind and key, or it was refused. true: there is one
 * more entry. */
bool vmm_kept(const struct vmm_keeper *keeper, CUresult answer, enum owned_kind kind, uint64_t key,
              struct owned entry);

/* What kept it, so noted, does no more. */
void vmm_let_go(const struct owned *kept);

/* Gives back what was charged for descriptors that are closed by now; false: nothing. */
bool vmm_look_for_closed(void);

/* This process is a forked child. */
void vmm_forget(void);

#endif
