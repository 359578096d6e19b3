/*
 * threads COUNT TURNS [vmm|small]: every thread takes and frees pieces of many sizes, by
 * itself and from a pool, or as mapped physical memory, or keeps some small ones, TURNS times.
 * Prints how often it got memory, and what is free at the end, in bytes, when all has been given
 * back.
 */
#include "simple.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define KEPT 48 /* small pieces of a thread at a time */

static CUcontext context;
static int turns;
static _Atomic(long) got;

static void *work(void *argument) {
    unsigned int seed = (unsigned int)(size_t)argument;
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < turns; i++) {
        CUdeviceptr pointer;
        size_t bytes = ((size_t)rand_r(&seed) % 512 + 1) << 20;
        int pooled = rand_r(&seed) % 4 == 0;
        CUresult answer =
            pooled ? cuMemAllocAsync(&pointer, bytes, NULL) : cuMemAlloc_v2(&pointer, bytes);
        if (answer == CUDA_ERROR_OUT_OF_MEMORY)
            continue;
        MUST(answer);
        got++;
        if (pooled)
            MUST(cuMemFreeAsync(pointer, NULL));
        else
            MUST(cuMemFree_v2(pointer));
    }
    return NULL;
}

/* Physical memory, of which every other piece is mapped; the handle goes before the mapping. */
static void *map(void *argument) {
    unsigned int seed = (unsigned int)(size_t)argument;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < turns; i++) {
        CUmemGenericAllocationHandle handle;
        CUdeviceptr pointer;
        size_t bytes = (size_t)(rand_r(&seed) % 4 + 1) << 21;
        CUresult answer = cuMemCreate(&handle, bytes, &properties, 0);
        if (answer == CUDA_ERROR_OUT_OF_MEMORY)
            continue;
        MUST(answer);
        got++;
        if (i % 2) {
            MUST(cuMemRelease(handle));
            continue;
        }
        MUST(cuMemAddressReserve(&pointer, bytes, 0, 0, 0));
        MUST(cuMemMap(pointer, bytes, 0, handle, 0));
        MUST(cuMemRelease(handle));
        MUST(cuMemUnmap(pointer, bytes));
        MUST(cuMemAddressFree(pointer, bytes));
    }
    return NULL;
}

/* Small pieces, which share pages with those of other threads; they go in any order. */
static void *keep(void *argument) {
    unsigned int seed = (unsigned int)(size_t)argument;
    CUdeviceptr kept[KEPT];
    unsigned int count = 0;
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < turns; i++) {
        if (count == KEPT || (count && rand_r(&seed) % 3 == 0)) {
            unsigned int gone = (unsigned int)rand_r(&seed) % count;
            MUST(cuMemFree_v2(kept[gone]));
            kept[gone] = kept[--count];
        } else {
            MUST(cuMemAlloc_v2(&kept[count++], (size_t)rand_r(&seed) % (1u << 20) + 1));
            got++;
        }
    }
    while (count)
        MUST(cuMemFree_v2(kept[--count]));
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, free_bytes, total;
    turns = argc > 2 ? atoi(argv[2]) : 0;
    use_device();
    MUST(cuCtxGetCurrent(&context));
    void *(*turn)(void *) = argc < 4 ? work : strcmp(argv[3], "vmm") == 0 ? map : keep;
    for (size_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, turn, (void *)(i + 1));
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    CUmemoryPool pool;
    MUST(cuCtxSynchronize());
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolTrimTo(pool, 0));
    MUST(cuMemGetInfo_v2(&free_bytes, &total));
    printf("%ld %zu\n", got, free_bytes);
    return 0;
}
