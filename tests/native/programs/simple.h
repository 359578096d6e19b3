/* What the small programs share: a context on the first device, and ending with
 * a message. */
#ifndef SIMPLE_H
#define SIMPLE_H

#include "cuda_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult outcome = (call);                                                                 \
        if (outcome != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, outcome);                \
            _exit(2);                                                                              \
        }                                                                                          \
    } while (0)

static inline void use_device(void) {
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

/* Takes pieces until the driver refuses; -1: with another answer than out of
 * memory. */
static inline int take_all(size_t bytes, CUdeviceptr *pointers, int most) {
    CUresult answer = CUDA_SUCCESS;
    int count = 0;
    while (count < most && (answer = cuMemAlloc_v2(&pointers[count], bytes)) == CUDA_SUCCESS)
        count++;
    return answer == CUDA_ERROR_OUT_OF_MEMORY ? count : -1;
}

#endif
