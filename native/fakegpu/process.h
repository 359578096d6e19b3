/*
 * What one process holds of the fake driver: contexts, allocations, and the way in and out of every
 * call. One mutex guards it all; a call takes it with one of the fg_enter functions and gives it
 * back with fg_leave, always both.
 */
#ifndef FAKEGPU_PROCESS_H
#define FAKEGPU_PROCESS_H

#define CUDA_API __attribute__((visibility("default")))
#include "cuda_abi.h"
#include "state.h"

typedef struct CUmemPoolHandle_st Pool;

enum { FG_LIMITS_OF_CONTEXT = 16 };

struct CUctx_st {
    int device; /* ordinal */
    unsigned int flags;
    bool primary, alive;
    uint64_t limit[FG_LIMITS_OF_CONTEXT]; /* cuCtxSetLimit */
    CUcontext next; /* every context ever made, so that a stale handle is recognised */
};

/* A device as this process numbers it. */
typedef struct {
    const FgDeviceConfig *config;
    int shared;
    CUcontext primary;
    unsigned int primary_users, primary_flags;
    uint64_t small;                    /* bytes in allocations that share granules */
    Pool *pools, *default_pool, *pool; /* all of the device; the one made with it; the one in use */
    uint64_t graph_used, graph_used_high, graph_reserved, graph_reserved_high;
} Device;

typedef struct Allocation {
    CUdeviceptr pointer;
    size_t bytes;
    uint64_t charged; /* bytes taken from the device for this one alone */
    int device;
    uint64_t share; /* 0: no handle for other processes was made of it */
    bool foreign;   /* another's memory, opened here: no cuMemFree */
    bool costless;  /* another's memory that cuMemFree unmaps */
    FgKind kind;
    Pool *pool;
    CUcontext context; /* in which it was made */
    struct Allocation *next;
} Allocation;

typedef struct {
    bool ready;
    unsigned int generation; /* grows with every fork: a child owns nothing of its parent's */
    FgState state;
    int count;
    Device device[FG_DEVICES];
    CUcontext contexts;
} Process;

extern Process fg;

/* The ways in. On an error the mutex is free again and the error is the call's result. */
CUresult fg_enter(void);                                     /* cuInit was called */
CUresult fg_enter_device(CUdevice ordinal, Device **device); /* and the device exists */
CUresult fg_enter_context(Device **device);                  /* and a context is current */
CUresult fg_leave(CUresult result);

/* The same as statements of a function that returns CUresult. */
#define FG_RETURN_ERROR(call)                                                                      \
    do {                                                                                           \
        CUresult entered = (call);                                                                 \
        if (entered != CUDA_SUCCESS) {                                                             \
            return entered;                                                                        \
        }                                                                                          \
    } while (0)
#define FG_ENTER() FG_RETURN_ERROR(fg_enter())
#define FG_ENTER_DEVICE(ordinal, device)                                                           \
    Device *device;                                                                                \
    FG_RETURN_ERROR(fg_enter_device(ordinal, &device));                                            \
    (void)device
#define FG_ENTER_CONTEXT(device)                                                                   \
    Device *device;                                                                                \
    FG_RETURN_ERROR(fg_enter_context(&device));                                                    \
    (void)device
#define FG_REQUIRE(condition, error)                                                               \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return fg_leave(error);                                                                \
        }                                                                                          \
    } while (0)

/* One exported function as another version of the same. They have addresses of their own, as in the
 * real driver: what maps addresses to functions must not take one for the other. */
#define FG_FORWARD(symbol, parameters, call)                                                       \
    CUresult symbol parameters {                                                                   \
        return call;                                                                               \
    }

/* Contexts. */
CUcontext fg_current(void);
bool fg_alive(CUcontext context);

/* Whether memory at this location is a device's: newer drivers have more names for that. */
static inline bool fg_on_device(const CUmemLocation *location) {
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ||
           location->type == CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN ||
           location->type == CU_MEM_LOCATION_TYPE_NEWER;
}

/* Of such a location: which device's. */
static inline int fg_ordinal(const CUmemLocation *location) {
    bool part = location->type == CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN;
    return part ? location->id & 0xff : location->id;
}

/* Take and give back memory of a device of this process. */
bool fg_take(Device *device, FgKind kind, uint64_t bytes);
void fg_give(Device *device, FgKind kind, uint64_t bytes);
/* Give back all that this process holds of a device but contexts: its last context went. */
void fg_device_drop(Device *device);

/* Pretended device memory that can be written to; `low`: below 4 GiB. 0: the machine has none. */
CUdeviceptr fg_map(size_t bytes, bool low);
void fg_unmap(CUdeviceptr pointer, size_t bytes);

/* The table of allocations. */
bool fg_remember(Allocation allocation);
Allocation *fg_find(CUdeviceptr pointer);
Allocation *fg_find_range(CUdeviceptr inside);
Allocation fg_forget(Allocation *allocation);
/* Unmap all of a device (of every device: -1) without giving the charge back. */
void fg_forget_device(int device);
void fg_free(Allocation *allocation);
/* Free what was allocated at once in a context: it goes with it. */
void fg_free_of(CUcontext context);

/* Allocate for this context with cuMemAlloc's rules. */
CUresult fg_allocate(Device *device, FgKind kind, size_t bytes, bool low, CUdeviceptr *pointer);

/* Modules (modules.c): those of a context that goes, or of all, are loaded nowhere. */
void fg_modules_drop(CUcontext context, bool charged);

/* Memory pools (pools.c). */
void fg_pools_init(Device *device);
void fg_pools_drop(Device *device);
void fg_pool_free(Allocation *allocation);
/* Work of the stream was waited for; NULL: of all of them. */
void fg_pools_synchronize(Device *device, CUstream stream);
CUresult fg_pool_allocate(Pool *pool, size_t bytes, CUdeviceptr *pointer);

/* Mapped virtual memory (vmm.c): are these bytes mapped and accessible? */
bool fg_vmm_holds(CUdeviceptr pointer, size_t bytes);
void fg_vmm_drop(void);
/* The memory of exported descriptors that were closed goes back at the next call of any kind. */
void fg_vmm_drop_closed(void);

/* What is bound (bound.c): what is bound to something goes with that; after a fork all is the
 * parent's. */
void fg_unbind_all(const void *target);
void fg_bindings_drop(void);

/* Arrays (arrays.c): forget those of a device, or all. */
void fg_arrays_drop(const Device *device);
/* Whether what memory is to be mapped into takes it. */
bool fg_array_is_sparse(const CUarrayMapInfo *map);

/* Graphs (graphs.c): what a capturing stream does instead of allocating, and a free of theirs. */
bool fg_stream_capture(CUstream stream, CUgraph *graph);
CUresult fg_graph_add_alloc(CUgraph graph, Device *device, size_t bytes, CUdeviceptr *pointer,
                            CUgraphNode *node);
CUresult fg_graph_add_free(CUgraph graph, CUdeviceptr pointer, CUgraphNode *node);
void fg_graph_free(Allocation *allocation);
CUresult fg_graph_new(CUgraph *graph);

#endif
