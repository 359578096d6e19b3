/* The way into every call, cuInit, and forks. */
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>

Process fg;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* CUDA does not survive a fork: the child has to call cuInit, and then owns nothing. */
static void forked(void) {
    pthread_mutex_init(&mutex, NULL);
    /* What is open stays so. */
    FgState state = {.shared = fg.state.shared, .lock_file = -1, .kept_file = -1, .slot = -1};
    fg_forget_device(-1);
    fg_vmm_drop(); /* before what it is bound to */
    fg_arrays_drop(NULL);
    fg_modules_drop(NULL, false);
    fg = (Process){.generation = fg.generation + 1, .contexts = fg.contexts, .state = state};
    for (CUcontext context = fg.contexts; context; context = context->next) {
        context->alive = false;
    }
}

/* No call is under way in the child: a descriptor that one had open for a moment would stay so. */
static void forking(void) {
    pthread_mutex_lock(&mutex);
}

static void went_on(void) {
    pthread_mutex_unlock(&mutex);
}

static CUresult start(void) {
    static bool watching;
    int visible[FG_DEVICES];
    int error = fg_attach(&fg.state, true);
    if (error) {
        return error == ENOENT ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_OPERATING_SYSTEM;
    }
    fg.count = 0;
    int count = fg_visible(&fg.state.config, true, visible);
    for (int i = 0; i < count; i++) {
        int shared = fg.state.to_shared[visible[i]];
        if (!fg.state.shared->device[shared].lost) {
            fg.device[fg.count++] =
                (Device){.config = &fg.state.config.devices[visible[i]], .shared = shared};
        }
    }
    if (!watching) {
        watching = !pthread_atfork(forking, went_on, forked);
    }
    fg.ready = fg.count > 0;
    return fg.ready ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuInit(unsigned int flags) {
    if (flags) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&mutex);
    return fg_leave(fg.ready ? CUDA_SUCCESS : start());
}

CUresult fg_enter(void) {
    pthread_mutex_lock(&mutex);
    if (!fg.ready) {
        return fg_leave(CUDA_ERROR_NOT_INITIALIZED);
    }
    fg_vmm_drop_closed();
    return CUDA_SUCCESS;
}

CUresult fg_leave(CUresult result) {
    pthread_mutex_unlock(&mutex);
    return result;
}

CUresult fg_enter_device(CUdevice ordinal, Device **device) {
    FG_ENTER();
    FG_REQUIRE(ordinal >= 0 && ordinal < fg.count, CUDA_ERROR_INVALID_DEVICE);
    *device = &fg.device[ordinal];
    return CUDA_SUCCESS;
}

/* What fakegpuctl injected: a lost device fails for good, a next error once. */
static CUresult injected(const Device *device) {
    FgDevice *shared = &fg.state.shared->device[device->shared];
    if (__atomic_load_n(&shared->lost, __ATOMIC_RELAXED)) {
        return CUDA_ERROR_UNKNOWN;
    }
    if (!__atomic_load_n(&shared->next_error, __ATOMIC_RELAXED)) {
        return CUDA_SUCCESS;
    }
    return (CUresult)__atomic_exchange_n(&shared->next_error, 0, __ATOMIC_RELAXED);
}

CUresult fg_enter_context(Device **device) {
    FG_ENTER();
    CUcontext current = fg_current();
    FG_REQUIRE(current, CUDA_ERROR_INVALID_CONTEXT);
    FG_REQUIRE(fg_alive(current), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    *device = &fg.device[current->device];
    CUresult result = injected(*device);
    return result == CUDA_SUCCESS ? result : fg_leave(result);
}

/* For programs that make a trace: how busy this process is from now on, as FAKEGPU_BUSY has it. */
__attribute__((visibility("default"))) int fakegpu_busy(const char *text) {
    pthread_mutex_lock(&mutex);
    bool done = false;
    if (fg.ready && fg.state.slot >= 0) {
        fg_lock(&fg.state);
        done = fg_set_busy(&fg.state.shared->slot[fg.state.slot], text);
        fg_unlock(&fg.state);
    }
    fg_leave(CUDA_SUCCESS);
    return done ? 0 : -1;
}

bool fg_take(Device *device, FgKind kind, uint64_t bytes) {
    fg_lock(&fg.state);
    bool taken = fg_charge(&fg.state, device->shared, kind, bytes);
    fg_unlock(&fg.state);
    return taken;
}

void fg_give(Device *device, FgKind kind, uint64_t bytes) {
    fg_lock(&fg.state);
    fg_release(&fg.state, device->shared, kind, bytes);
    fg_unlock(&fg.state);
}
