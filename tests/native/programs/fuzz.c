/*
 * fuzz SEED MILLISECONDS THREADS [KIND]: threads that take and release memory of every kind in a
 * random order, fork children that do the same, make and destroy contexts. Everything is given back
 * before it ends with 0; any answer but success, out of memory and UNKNOWN (which the test injects)
 * ends it with 2, and so does memory that cannot be released. With one thread the device is reset,
 * too.
 */
#include "simple.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

enum { ITEMS = 24, OF_CHILD = 60, TRIES = 1000, MIB = 1 << 20, KINDS = 12 };

struct item {
    CUresult (*drop)(struct item *item); /* NULL: a free place */
    CUdeviceptr pointer;
    size_t bytes;
    CUmemGenericAllocationHandle handle, object;
    CUarray array;
    CUmipmappedArray mipmap;
    CUgraph graph;
    CUgraphExec exec;
    CUmemoryPool pool;
    CUcontext context;
    int descriptor;
};

struct worker {
    unsigned int seed, kind; /* of what was tried last */
    struct item items[ITEMS];
    CUstream stream;
};

static CUcontext primary;
static int threads, only = -1; /* kind of memory, of those in take() */
static struct timespec end;

static unsigned int any(struct worker *worker, unsigned int below) {
    return (unsigned int)rand_r(&worker->seed) % below;
}

static bool is_injected(CUresult answer) {
    return answer == CUDA_ERROR_UNKNOWN || answer == CUDA_ERROR_OUT_OF_MEMORY;
}

static void known(CUresult answer, const char *call, unsigned int kind) {
    if (answer == CUDA_SUCCESS || is_injected(answer))
        return;
    fprintf(stderr, "%s (kind %u): %d\n", call, kind, answer);
    _exit(2);
}

/* Until the driver does it: an injected failure changes nothing. */
#define SURE(call)                                                                                 \
    do {                                                                                           \
        CUresult sure_ = CUDA_ERROR_UNKNOWN;                                                       \
        for (int i_ = 0; i_ < TRIES && is_injected(sure_); i_++)                                   \
            sure_ = (call);                                                                        \
        MUST(sure_);                                                                               \
    } while (0)

static CUresult drop_linear(struct item *item) {
    return cuMemFree_v2(item->pointer);
}
static CUresult drop_handle(struct item *item) {
    return cuMemRelease(item->handle);
}
static CUresult drop_mapping(struct item *item) {
    CUresult answer = cuMemUnmap(item->pointer, item->bytes);
    if (answer == CUDA_SUCCESS)
        SURE(cuMemAddressFree(item->pointer, item->bytes));
    return answer;
}
/* With its object, which may have let it go before. */
static CUresult drop_bound(struct item *item) {
    if (item->bytes & (2 * MIB))
        SURE(cuMulticastUnbind(item->object, 0, 0, item->bytes));
    return cuMemRelease(item->object);
}
static CUresult drop_descriptor(struct item *item) {
    size_t free_bytes, total;
    close(item->descriptor);
    cuMemGetInfo_v2(&free_bytes,
                    &total); /* the pretended driver sees at its next call that it is */
    return CUDA_SUCCESS;
}
static CUresult drop_array(struct item *item) {
    return cuArrayDestroy(item->array);
}
static CUresult drop_mipmap(struct item *item) {
    return cuMipmappedArrayDestroy(item->mipmap);
}
static CUresult drop_graph(struct item *item) {
    if (item->pointer && cuMemFree_v2(item->pointer) != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    item->pointer = 0;
    SURE(cuGraphExecDestroy(item->exec));
    SURE(cuGraphDestroy(item->graph));
    return CUDA_SUCCESS;
}
static CUresult drop_pool(struct item *item) {
    return cuMemPoolDestroy(item->pool);
}
static CUresult drop_context(struct item *item) {
    return cuCtxDestroy_v2(item->context);
}

static const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

/* Mapped, exported or kept; what is mapped or exported may outlive its handle. */
static CUresult take_physical(struct worker *worker, struct item *item) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = here};
    item->bytes = (size_t)(any(worker, 8) + 1) * 2 * MIB;
    CUresult answer = cuMemCreate(&item->handle, item->bytes, &properties, 0);
    if (answer != CUDA_SUCCESS)
        return answer;
    item->drop = drop_handle;
    /* Closing is not a call of the driver: the pretended one sees it at its next, so no other
     * thread may let the library see it before. */
    if (threads == 1 && any(worker, 3) == 0 &&
        cuMemExportToShareableHandle(&item->descriptor, item->handle,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS) {
        SURE(cuMemRelease(item->handle));
        item->drop = drop_descriptor;
    } else if (!any(worker, 3)) {
        CUmulticastObjectProp properties = {.numDevices = 1, .size = item->bytes};
        SURE(cuMulticastCreate(&item->object, &properties));
        SURE(cuMulticastAddDevice(item->object, 0));
        SURE(cuMulticastBindMem(item->object, 0, item->handle, 0, item->bytes, 0));
        SURE(cuMemRelease(item->handle));
        item->drop = drop_bound;
    } else if (any(worker, 2)) {
        SURE(cuMemAddressReserve(&item->pointer, item->bytes, 0, 0, 0));
        CUresult mapped = cuMemMap(item->pointer, item->bytes, 0, item->handle, 0);
        if (mapped == CUDA_SUCCESS) {
            SURE(cuMemRelease(item->handle));
            item->drop = drop_mapping;
        } else {
            SURE(cuMemAddressFree(item->pointer, item->bytes));
        }
    }
    return answer;
}

/* Launched, so that its memory is there until it is freed. */
static CUresult take_graph(struct worker *worker, struct item *item) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here},
        .bytesize = (size_t)(any(worker, 16) + 1) * MIB};
    SURE(cuGraphCreate(&item->graph, 0));
    CUresult answer = cuGraphAddMemAllocNode(&node, item->graph, NULL, 0, &params);
    if (answer == CUDA_SUCCESS) {
        answer = cuGraphInstantiateWithFlags(&item->exec, item->graph, 0);
        if (answer == CUDA_SUCCESS) {
            answer = cuGraphLaunch(item->exec, worker->stream);
            if (answer != CUDA_SUCCESS)
                SURE(cuGraphExecDestroy(item->exec));
        }
    }
    if (answer == CUDA_SUCCESS) {
        item->pointer = params.dptr;
        item->drop = drop_graph;
    } else {
        SURE(cuGraphDestroy(item->graph));
    }
    return answer;
}

/* A context with something in it, which goes with it. */
static CUresult take_context(struct worker *worker, struct item *item) {
    CUdeviceptr lost;
    CUresult answer = cuCtxCreate_v2(&item->context, 0, 0);
    if (answer == CUDA_SUCCESS) {
        item->drop = drop_context;
        for (unsigned int i = any(worker, 6); i > 0; i--)
            known(cuMemAlloc_v2(&lost, (size_t)(any(worker, 4 * MIB) + 1)), "in a context",
                  worker->kind);
        known(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, (size_t)any(worker, 16) * MIB), "limit",
              worker->kind);
        CUcontext own;
        SURE(cuCtxPopCurrent_v2(&own));
    }
    return answer;
}

static CUresult take_own_pool(struct worker *worker, struct item *item) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    CUdeviceptr pointer;
    CUresult answer = cuMemPoolCreate(&item->pool, &properties);
    if (answer != CUDA_SUCCESS)
        return answer;
    item->drop = drop_pool;
    for (unsigned int i = any(worker, 4); i > 0; i--) {
        size_t bytes = (size_t)(any(worker, 8 * MIB) + 1);
        if (cuMemAllocFromPoolAsync(&pointer, bytes, item->pool, worker->stream) == CUDA_SUCCESS)
            SURE(cuMemFreeAsync(pointer, worker->stream));
    }
    return answer;
}

static CUresult take(struct worker *worker, struct item *item) {
    size_t small = (size_t)any(worker, MIB) + 1, large = (size_t)any(worker, 64 * MIB) + 1, pitch;
    CUDA_ARRAY3D_DESCRIPTOR shape = {any(worker, 2000) + 8, any(worker, 2000) + 8, any(worker, 3),
                                     CU_AD_FORMAT_FLOAT,    1u << any(worker, 3),  0};
    CUresult answer;
    *item = (struct item){0};
    worker->kind = only < 0 ? any(worker, KINDS) : (unsigned int)only;
    switch (worker->kind) {
    case 0:
    case 1:
        answer = cuMemAlloc_v2(&item->pointer, small);
        break;
    case 2:
        answer = cuMemAlloc_v2(&item->pointer, large);
        break;
    case 3:
        answer = cuMemAllocManaged(&item->pointer, any(worker, 2) ? small : large, 1);
        break;
    case 4:
        answer = cuMemAllocPitch_v2(&item->pointer, &pitch, any(worker, 4096) + 1,
                                    any(worker, 4096) + 1, 4);
        break;
    case 5:
        answer = cuMemAllocAsync(&item->pointer, any(worker, 2) ? small : large, worker->stream);
        break;
    case 6:
        return take_physical(worker, item);
    case 7:
        answer = cuArray3DCreate_v2(&item->array, &shape);
        item->drop = answer == CUDA_SUCCESS ? drop_array : NULL;
        return answer;
    case 8:
        answer = cuMipmappedArrayCreate(&item->mipmap, &shape, 1 + any(worker, 3));
        item->drop = answer == CUDA_SUCCESS ? drop_mipmap : NULL;
        return answer;
    case 9:
        return take_graph(worker, item);
    case 10:
        return any(worker, 4) ? take_own_pool(worker, item) : take_context(worker, item);
    default:
        answer = cuMemAlloc_v2(&item->pointer, (size_t)any(worker, 8192) + 1);
        break;
    }
    item->drop = answer == CUDA_SUCCESS ? drop_linear : NULL;
    return answer;
}

static void take_one(struct worker *worker, struct item *item) {
    CUresult answer = take(worker, item);
    known(answer, "take", worker->kind);
}

static void drop_all(struct worker *worker) {
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = &worker->items[i];
        if (item->drop)
            SURE(item->drop(item));
        item->drop = NULL;
    }
}

static void begin(struct worker *worker) {
    for (int i = 0; i < ITEMS; i++)
        worker->items[i].drop = NULL;
    SURE(cuCtxSetCurrent(primary));
    SURE(cuStreamCreate(&worker->stream, 0));
}

static void finish(struct worker *worker) {
    drop_all(worker);
    SURE(cuStreamSynchronize(worker->stream));
    SURE(cuStreamDestroy_v2(worker->stream));
}

static void step(struct worker *worker);

/* What the parent has is not the child's. */
static void in_a_child(struct worker *worker) {
    unsigned int seed = (unsigned int)rand_r(&worker->seed);
    pid_t child = fork();
    if (child == 0) {
        struct worker own = {.seed = seed};
        threads = 2; /* no child of its own, and no reset */
        known(cuInit(0), "cuInit", 0);
        CUresult answer = cuDevicePrimaryCtxRetain(&primary, 0);
        known(answer, "retain", 0);
        if (answer != CUDA_SUCCESS)
            _exit(0); /* no room for a context */
        begin(&own);
        for (int i = 0; i < OF_CHILD; i++)
            step(&own);
        finish(&own);
        _exit(0);
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && status != 0) {
        fprintf(stderr, "a child ended with status %d\n", status);
        _exit(2);
    }
}

static void reset(struct worker *worker) {
    for (int i = 0; i < ITEMS; i++) { /* these do not go with a context */
        struct item *item = &worker->items[i];
        if (item->drop && item->drop != drop_linear && item->drop != drop_array &&
            item->drop != drop_mipmap)
            SURE(item->drop(item));
        item->drop = NULL;
    }
    SURE(cuDevicePrimaryCtxReset_v2(0));
    CUresult answer;
    while ((answer = cuDevicePrimaryCtxRetain(&primary, 0)) != CUDA_SUCCESS) {
        known(answer, "retain after a reset", 0); /* a neighbour took the room */
        usleep(1000);
    }
    begin(worker);
}

static void step(struct worker *worker) {
    struct item *item = &worker->items[any(worker, ITEMS)];
    size_t free_bytes, total;
    unsigned int what = any(worker, 1000);
    if (what == 0 && threads == 1)
        in_a_child(worker);
    else if (what == 1 && threads == 1)
        reset(worker);
    else if (what < 40)
        known(cuStreamSynchronize(worker->stream), "synchronize", worker->kind);
    else if (what < 60)
        known(cuMemGetInfo_v2(&free_bytes, &total), "cuMemGetInfo", worker->kind);
    else if (what < 70)
        known(cuDeviceGraphMemTrim(0), "trim", worker->kind);
    else if (!item->drop)
        take_one(worker, item);
    else if (item->drop == drop_linear && what < 300) {
        if (cuMemFreeAsync(item->pointer, worker->stream) == CUDA_SUCCESS)
            item->drop = NULL;
    } else {
        CUresult answer = item->drop(item);
        known(answer, "drop", worker->kind);
        item->drop = answer == CUDA_SUCCESS ? NULL : item->drop;
    }
}

static bool over(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    begin(worker);
    while (!over())
        for (int i = 0; i < 50; i++)
            step(worker);
    finish(worker);
    return NULL;
}

int main(int argc, char **argv) {
    unsigned int seed = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
    long milliseconds = argc > 2 ? atol(argv[2]) : 1000;
    threads = argc > 3 ? atoi(argv[3]) : 1;
    only = argc > 4 ? atoi(argv[4]) : -1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += milliseconds % 1000 * 1000000;
    end.tv_sec += milliseconds / 1000 + end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    MUST(cuInit(0));
    CUresult answer;
    while ((answer = cuDevicePrimaryCtxRetain(&primary, 0)) != CUDA_SUCCESS) {
        known(answer, "retain", 0);
        if (over())
            return 0;
        usleep(1000);
    }
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_t started[16];
    for (int i = 0; i < threads; i++) {
        workers[i].seed = seed * 31 + (unsigned int)i;
        pthread_create(&started[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    free(workers);
    SURE(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
