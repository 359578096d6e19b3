/* Contexts: each costs what the configuration says, and the last one takes its memory with it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "process.h"

#define HEAP (8 * FG_MIB) /* of kernels, that every context has by itself */

enum { DEPTH = 64 };
static __thread struct {
    unsigned int generation;
    int depth;
    CUcontext context[DEPTH];
} stack;

CUcontext fg_current(void) {
    if (stack.generation != fg.generation) {
        stack.generation = fg.generation;
        stack.depth = 0;
    }
    return stack.depth ? stack.context[stack.depth - 1] : NULL;
}

bool fg_alive(CUcontext context) {
    CUcontext known = fg.contexts;
    while (known && known != context) {
        known = known->next;
    }
    return known && known->alive;
}

static CUresult push(CUcontext context) {
    fg_current();
    if (stack.depth == DEPTH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    stack.context[stack.depth++] = context;
    return CUDA_SUCCESS;
}

/* One that was destroyed, or a new one: as with real ones, its address may be that of an earlier.
 */
static CUcontext free_context(void) {
    CUcontext found = fg.contexts;
    while (found && found->alive) {
        found = found->next;
    }
    if (!found && (found = calloc(1, sizeof *found))) {
        found->next = fg.contexts;
        fg.contexts = found;
    }
    return found;
}

static CUresult create(Device *device, unsigned int flags, bool primary, CUcontext *context) {
    if (fg.state.shared->device[device->shared].lost) {
        return CUDA_ERROR_UNKNOWN;
    }
    CUcontext made = free_context();
    if (!made || !fg_take(device, FG_CONTEXT, fg.state.config.context)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fg_pools_init(device);
    CUcontext next = made->next;
    *made = (struct CUctx_st){.device = (int)(device - fg.device),
                              .flags = flags,
                              .primary = primary,
                              .alive = true,
                              .limit = {1024, FG_MIB, HEAP},
                              .next = next};
    *context = made;
    return CUDA_SUCCESS;
}

/* What a context holds for a heap of that size beyond what it has by itself. */
static uint64_t heap_beyond(uint64_t bytes) {
    return bytes > HEAP ? bytes - HEAP : 0;
}

static void destroy(CUcontext context) {
    Device *device = &fg.device[context->device];
    bool others = false;
    context->alive = false;
    fg_free_of(context);
    fg_modules_drop(context, true);
    fg_give(device, FG_CONTEXT,
            fg.state.config.context + heap_beyond(context->limit[CU_LIMIT_MALLOC_HEAP_SIZE]));
    for (CUcontext other = fg.contexts; other; other = other->next) {
        others = others || (other->alive && other->device == context->device);
    }
    if (!others) { /* pools, graphs, and arrays, which here live as long as any context */
        fg_device_drop(device);
    }
}

/* cuCtxCreate makes the new context current. */
static CUresult create_current(CUcontext *context, unsigned int flags, CUdevice ordinal) {
    if (fg.state.config.context_delay) {
        usleep(fg.state.config.context_delay);
    }
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(context, CUDA_ERROR_INVALID_VALUE);
    CUresult result = create(device, flags, false, context);
    return fg_leave(result == CUDA_SUCCESS ? push(*context) : result);
}

FG_FORWARD(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device),
           create_current(context, flags, device))

FG_FORWARD(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
           create_current(context, flags, device))

FG_FORWARD(cuCtxCreate_v3,
           (CUcontext * context, CUexecAffinityParam *affinity, int count, unsigned int flags,
            CUdevice device),
           create_current(context, flags, device))

FG_FORWARD(cuCtxCreate_v4,
           (CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice device),
           create_current(context, flags, device))

CUresult cuCtxDestroy_v2(CUcontext context) {
    FG_ENTER();
    if (!fg_alive(context) || context->primary) {
        return fg_leave(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (fg_current() == context) {
        stack.depth--;
    }
    destroy(context);
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuCtxDestroy, (CUcontext context), cuCtxDestroy_v2(context))

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(context, CUDA_ERROR_INVALID_VALUE);
    CUresult result = CUDA_SUCCESS;
    if (!device->primary) {
        result = create(device, device->primary_flags, true, &device->primary);
    }
    if (result == CUDA_SUCCESS) {
        device->primary_users++;
        *context = device->primary;
    }
    return fg_leave(result);
}

static void drop_primary(Device *device) {
    if (device->primary) {
        destroy(device->primary);
    }
    device->primary = NULL;
    device->primary_users = 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    if (!device->primary) {
        return fg_leave(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (--device->primary_users == 0) {
        drop_primary(device);
    }
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuDevicePrimaryCtxRelease, (CUdevice ordinal), cuDevicePrimaryCtxRelease_v2(ordinal))

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    drop_primary(device);
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuDevicePrimaryCtxReset, (CUdevice ordinal), cuDevicePrimaryCtxReset_v2(ordinal))

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
    FG_ENTER_DEVICE(ordinal, device);
    device->primary_flags = flags;
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuDevicePrimaryCtxSetFlags, (CUdevice ordinal, unsigned int flags),
           cuDevicePrimaryCtxSetFlags_v2(ordinal, flags))

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active) {
    FG_ENTER_DEVICE(ordinal, device);
    if (!flags || !active) {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = device->primary_flags;
    *active = device->primary != NULL;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    FG_ENTER();
    return fg_leave(fg_alive(context) ? push(context) : CUDA_ERROR_INVALID_CONTEXT);
}

FG_FORWARD(cuCtxPushCurrent, (CUcontext context), cuCtxPushCurrent_v2(context))

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    FG_ENTER();
    CUcontext current = fg_current();
    FG_REQUIRE(current, CUDA_ERROR_INVALID_CONTEXT);
    stack.depth--;
    if (context) {
        *context = current;
    }
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuCtxPopCurrent, (CUcontext * context), cuCtxPopCurrent_v2(context))

CUresult cuCtxSetCurrent(CUcontext context) {
    FG_ENTER();
    if (context && !fg_alive(context)) {
        return fg_leave(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (fg_current()) {
        stack.depth--;
    }
    return fg_leave(context ? push(context) : CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    FG_ENTER();
    FG_REQUIRE(context, CUDA_ERROR_INVALID_VALUE);
    *context = fg_current();
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *ordinal) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(ordinal, CUDA_ERROR_INVALID_VALUE);
    *ordinal = (int)(device - fg.device);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned int *flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(flags, CUDA_ERROR_INVALID_VALUE);
    *flags = fg_current()->flags;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version) {
    (void)context;
    FG_ENTER();
    FG_REQUIRE(version, CUDA_ERROR_INVALID_VALUE);
    *version = 3020;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuCtxGetLimit(size_t *value, int limit) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(value && limit >= 0 && limit < FG_LIMITS_OF_CONTEXT, CUDA_ERROR_INVALID_VALUE);
    *value = fg_current()->limit[limit];
    return fg_leave(CUDA_SUCCESS);
}

/* The heap of kernels is set aside at once; the real driver waits for the first kernel. */
CUresult cuCtxSetLimit(int limit, size_t value) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(limit >= 0 && limit < FG_LIMITS_OF_CONTEXT, CUDA_ERROR_INVALID_VALUE);
    CUcontext context = fg_current();
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
        uint64_t before = heap_beyond(context->limit[limit]), after = heap_beyond(value);
        FG_REQUIRE(after <= before || fg_take(device, FG_CONTEXT, after - before),
                   CUDA_ERROR_OUT_OF_MEMORY);
        fg_give(device, FG_CONTEXT, after < before ? before - after : 0);
    }
    context->limit[limit] = value;
    return fg_leave(CUDA_SUCCESS);
}
