/* Copies and fills. A device pointer is checked to lie in an allocation with room for the bytes. */
#include <string.h>

#include "process.h"

static bool holds(CUdeviceptr pointer, size_t bytes) {
    const Allocation *allocation = fg_find_range(pointer);
    if (!allocation) {
        return fg_vmm_holds(pointer, bytes);
    }
    return bytes <= allocation->bytes - (pointer - allocation->pointer);
}

static CUresult copy(void *to, CUdeviceptr device_to, const void *from, CUdeviceptr device_from,
                     size_t bytes) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(bytes, CUDA_SUCCESS);
    FG_REQUIRE(to || holds(device_to, bytes), CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(from || holds(device_from, bytes), CUDA_ERROR_INVALID_VALUE);
    memmove(to ? to : (void *)(uintptr_t)device_to, from ? from : (void *)(uintptr_t)device_from,
            bytes);
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes),
           copy(NULL, to, from, 0, bytes))
FG_FORWARD(cuMemcpyHtoD_v2_ptds, (CUdeviceptr to, const void *from, size_t bytes),
           copy(NULL, to, from, 0, bytes))
FG_FORWARD(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes),
           copy(to, 0, NULL, from, bytes))
FG_FORWARD(cuMemcpyDtoH_v2_ptds, (void *to, CUdeviceptr from, size_t bytes),
           copy(to, 0, NULL, from, bytes))
FG_FORWARD(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
           copy(NULL, to, NULL, from, bytes))
FG_FORWARD(cuMemcpyDtoD_v2_ptds, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
           copy(NULL, to, NULL, from, bytes))
FG_FORWARD(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
           copy(NULL, to, from, 0, bytes))
FG_FORWARD(cuMemcpyHtoDAsync_v2_ptsz,
           (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
           copy(NULL, to, from, 0, bytes))
FG_FORWARD(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
           copy(to, 0, NULL, from, bytes))
FG_FORWARD(cuMemcpyDtoHAsync_v2_ptsz, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
           copy(to, 0, NULL, from, bytes))

static CUresult fill(CUdeviceptr to, unsigned int value, size_t width, size_t count) {
    FG_ENTER_CONTEXT(device);
    size_t bytes;
    FG_REQUIRE(count, CUDA_SUCCESS);
    FG_REQUIRE(!__builtin_mul_overflow(width, count, &bytes), CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(holds(to, bytes), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        memcpy((char *)(uintptr_t)to + i * width, &value, width); /* little-endian, as the GPU */
    }
    return fg_leave(CUDA_SUCCESS);
}

FG_FORWARD(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),
           fill(to, value, 1, count))
FG_FORWARD(cuMemsetD8_v2_ptds, (CUdeviceptr to, unsigned char value, size_t count),
           fill(to, value, 1, count))
FG_FORWARD(cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, size_t count),
           fill(to, value, 4, count))
FG_FORWARD(cuMemsetD32_v2_ptds, (CUdeviceptr to, unsigned int value, size_t count),
           fill(to, value, 4, count))
