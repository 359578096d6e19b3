/*
 * Takes device memory behind a preloaded library's back: `evader MIB [ORDINAL]` holds MIB MiB until
 * it is killed, and prints how many it got. The driver's objects are linked into this program, and
 * a program finds its own symbols first, so no cu* symbol is ever looked up in a library. A real
 * program does the same with the driver's system calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda_abi.h"

int main(int count, char **words) {
    CUcontext context;
    CUdeviceptr pointer;
    size_t bytes = count > 1 ? strtoull(words[1], NULL, 10) << 20 : 0;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS) {
        result = cuCtxCreate_v2(&context, 0, count > 2 ? atoi(words[2]) : 0);
    }
    if (result == CUDA_SUCCESS) {
        result = cuMemAlloc_v2(&pointer, bytes);
    }
    printf("%s %zu MiB, result %d\n", result == CUDA_SUCCESS ? "holding" : "no", bytes >> 20,
           (int)result);
    fflush(stdout);
    while (result == CUDA_SUCCESS) {
        pause();
    }
    return 1;
}
