/*
 * allocbench KIND TURNS: nanoseconds of one allocation with its free, the least
 * of five runs of TURNS. KIND: small (4 KiB), large (64 MiB) by cuMemAlloc;
 * async (64 KiB) by cuMemAllocAsync from a pool that keeps its memory;
 * refused (1 TiB) by cuMemAlloc.
 */
#include "simple.h"

#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void once(const char *kind) {
    CUdeviceptr pointer;
    if (strcmp(kind, "refused") == 0) {
        if (cuMemAlloc_v2(&pointer, 1ull << 40) != CUDA_ERROR_OUT_OF_MEMORY)
            exit(1);
    } else if (strcmp(kind, "async") == 0) {
        MUST(cuMemAllocAsync(&pointer, 65536, NULL));
        MUST(cuMemFreeAsync(pointer, NULL));
    } else {
        MUST(cuMemAlloc_v2(&pointer, strcmp(kind, "small") == 0 ? 4096 : 64u << 20));
        MUST(cuMemFree_v2(pointer));
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 1;
    int turns = atoi(argv[2]);
    double least = 1e300;
    uint64_t keep = UINT64_MAX;
    CUmemoryPool pool;
    use_device();
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    for (int run = 0; run < 5; run++) {
        double start = now();
        for (int i = 0; i < turns; i++)
            once(argv[1]);
        double took = (now() - start) / turns;
        least = took < least ? took : least;
    }
    printf("%.1f\n", least);
    return 0;
}
