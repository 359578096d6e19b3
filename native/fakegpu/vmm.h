/* Physical memory by handle, for those who keep it without being a mapping: bound.c. */
#ifndef FAKEGPU_VMM_H
#define FAKEGPU_VMM_H

#include "process.h"

typedef struct Physical {
    CUmemAllocationProp properties;
    size_t bytes;
    Device *charged; /* NULL: nobody pays here (host memory, imported, multicast) */
    unsigned int references, maps, bindings;
    int file;       /* -1: cannot be exported */
    uint64_t share; /* 0: this process alone holds it */
    bool multicast;
    struct Physical *next;
} Physical;

/* NULL: no such handle. */
Physical *fg_physical(CUmemGenericAllocationHandle handle);
CUresult fg_physical_new(Physical physical, CUmemGenericAllocationHandle *handle);

/* What is mapped at an address, and where in it that is; NULL: nothing. */
Physical *fg_physical_at(CUdeviceptr pointer, size_t *offset);

/* A binding less: the memory goes back if nothing else keeps it. */
void fg_physical_unbound(Physical *physical);

#endif
