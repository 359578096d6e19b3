/*
 * Another preloaded library, of the kind that profilers and schedulers preload:
 * it has its own dlsym and its own cuMemAlloc_v2, and finds the next ones by
 * RTLD_NEXT. It counts its allocations, which interposer_count() tells.
 */
#include "cuda_abi.h"

#include <dlfcn.h>
#include <stdlib.h>

static _Atomic(int) count;

int interposer_count(void);
int interposer_count(void) {
    return count;
}

typedef void *dlsym_function(void *, const char *);

void *dlsym(void *handle, const char *symbol) {
    static dlsym_function *next;
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5", NULL};
    for (int i = 0; !next && versions[i]; i++)
        next = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return next ? next(handle, symbol) : NULL;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    static __typeof__(&cuMemAlloc_v2) next;
    if (!next)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    if (!next || next == cuMemAlloc_v2)
        abort(); /* resolved itself: an endless loop */
    count++;
    return next(pointer, bytes);
}
