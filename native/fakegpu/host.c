/*
 * The machine's memory that programs pin or register, and hints about managed memory. None of it
 * takes memory of a device: managed memory is charged in full where it is allocated.
 */
#include <stdlib.h>

#include "process.h"

typedef struct Registered {
    char *start;
    size_t bytes;
    struct Registered *next;
} Registered;

static Registered *registered;
static unsigned int of_process; /* the generation of it whose list that is */

/* The one that has a byte of this range, or the end of the list. */
static Registered **find(const void *pointer, size_t bytes) {
    const char *start = pointer;
    if (of_process != fg.generation) {
        registered = NULL; /* the parent's */
        of_process = fg.generation;
    }
    Registered **link = &registered;
    while (*link && (start >= (*link)->start + (*link)->bytes || (*link)->start >= start + bytes)) {
        link = &(*link)->next;
    }
    return link;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(pointer && bytes && flags < 16, CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(!*find(pointer, bytes), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    Registered *made = malloc(sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Registered){.start = pointer, .bytes = bytes, .next = registered};
    registered = made;
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuMemHostRegister, (void *pointer, size_t bytes, unsigned int flags),
           cuMemHostRegister_v2(pointer, bytes, flags))

/* By its first byte. */
CUresult cuMemHostUnregister(void *pointer) {
    FG_ENTER_CONTEXT(device);
    Registered **link = find(pointer, 1);
    FG_REQUIRE(*link && (*link)->start == pointer, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    Registered *gone = *link;
    *link = gone->next;
    free(gone);
    return fg_leave(CUDA_SUCCESS);
}

/* Advice and prefetching are for managed memory, and for devices that there are. */
static CUresult hint(CUdeviceptr pointer, size_t bytes, const CUmemLocation *location) {
    FG_ENTER_CONTEXT(device);
    Allocation *allocation = fg_find_range(pointer);
    FG_REQUIRE(bytes && allocation && allocation->kind == FG_MANAGED &&
                   bytes <= allocation->bytes - (pointer - allocation->pointer),
               CUDA_ERROR_INVALID_VALUE);
    bool there = location->id >= 0 && location->id < fg.count;
    bool host = location->type >= CU_MEM_LOCATION_TYPE_HOST &&
                location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    FG_REQUIRE(host || fg_on_device(location), CUDA_ERROR_INVALID_VALUE);
    return fg_leave(host || there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

/* As older functions say it: a device, or CU_DEVICE_CPU. */
static CUresult hint_device(CUdeviceptr pointer, size_t bytes, CUdevice ordinal) {
    bool host = ordinal == CU_DEVICE_CPU;
    CUmemLocation location = {
        .type = host ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
    return hint(pointer, bytes, &location);
}

static bool is_advice(int advice) {
    return advice >= 1 && advice <= 6;
}

CUresult cuMemAdvise(CUdeviceptr pointer, size_t bytes, int advice, CUdevice ordinal) {
    return is_advice(advice) ? hint_device(pointer, bytes, ordinal) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemAdvise_v2(CUdeviceptr pointer, size_t bytes, int advice, CUmemLocation location) {
    return is_advice(advice) ? hint(pointer, bytes, &location) : CUDA_ERROR_INVALID_VALUE;
}
FG_FORWARD(cuMemPrefetchAsync,
           (CUdeviceptr pointer, size_t bytes, CUdevice ordinal, CUstream stream),
           hint_device(pointer, bytes, ordinal))
FG_FORWARD(cuMemPrefetchAsync_ptsz,
           (CUdeviceptr pointer, size_t bytes, CUdevice ordinal, CUstream stream),
           hint_device(pointer, bytes, ordinal))
FG_FORWARD(cuMemPrefetchAsync_v2,
           (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
            CUstream stream),
           flags ? CUDA_ERROR_INVALID_VALUE : hint(pointer, bytes, &location))
FG_FORWARD(cuMemPrefetchAsync_v2_ptsz,
           (CUdeviceptr pointer, size_t bytes, CUmemLocation location, unsigned int flags,
            CUstream stream),
           flags ? CUDA_ERROR_INVALID_VALUE : hint(pointer, bytes, &location))

/* Pinned memory is the machine's own. */
CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(pointer && bytes, CUDA_ERROR_INVALID_VALUE);
    *pointer = malloc(bytes);
    return fg_leave(*pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
FG_FORWARD(cuMemAllocHost_v2, (void **pointer, size_t bytes), cuMemHostAlloc(pointer, bytes, 0))
FG_FORWARD(cuMemAllocHost, (void **pointer, unsigned int bytes), cuMemHostAlloc(pointer, bytes, 0))

CUresult cuMemFreeHost(void *pointer) {
    FG_ENTER_CONTEXT(device);
    free(pointer);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pointer, void *host, unsigned int flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(pointer && host && !flags, CUDA_ERROR_INVALID_VALUE);
    *pointer = (CUdeviceptr)(uintptr_t)host;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *pointer, void *host, unsigned int flags) {
    CUdeviceptr wide = 0;
    CUresult result = cuMemHostGetDevicePointer_v2(pointer ? &wide : NULL, host, flags);
    if (result == CUDA_SUCCESS) {
        *pointer = (CUdeviceptr_v1)wide;
    }
    return result;
}
