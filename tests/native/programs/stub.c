/*
 * libstub.so, stub and stublinked: what exports functions of the driver's names itself, each of
 * which looks the driver's up when it is first called, as TensorFlow does. ask(mib, opened) opens
 * the driver first if `opened`, and prints what a call before cuInit is answered, the MiB that it
 * is told of, and how many pieces it gets. STUB_INIT: it exports cuInit, too.
 */
#include "cuda_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(const char *name) {
    static void *driver;
    if (!driver)
        driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver ? dlsym(driver, name) : NULL;
    if (!found)
        exit(3);
    return found;
}

#define STUB(symbol, parameters, ...)                                                              \
    CUresult symbol parameters {                                                                   \
        static __typeof__(&symbol) real;                                                           \
        if (!real)                                                                                 \
            real = (__typeof__(&symbol))find(#symbol);                                             \
        return real(__VA_ARGS__);                                                                  \
    }
#ifdef STUB_INIT
STUB(cuInit, (unsigned int flags), flags)
#endif
STUB(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device), bytes, device)
STUB(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), context, device)
STUB(cuCtxSetCurrent, (CUcontext context), context)
STUB(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), pointer, bytes)

int ask(size_t mib, int opened);
int ask(size_t mib, int opened) {
    size_t total = 0;
    CUcontext context;
    CUdeviceptr pointer;
    int pieces = 0;
    if (opened && !dlopen("libcuda.so.1", RTLD_NOW))
        return 1;
    int before = cuDeviceTotalMem_v2(&total, 0);
#ifdef STUB_INIT
    int answer = cuInit(0);
#else
    int answer = ((CUresult(*)(unsigned int))find("cuInit"))(0);
#endif
    if (answer || cuDeviceTotalMem_v2(&total, 0) || cuDevicePrimaryCtxRetain(&context, 0) ||
        cuCtxSetCurrent(context))
        return 2;
    while (pieces < 64 && cuMemAlloc_v2(&pointer, mib << 20) == CUDA_SUCCESS)
        pieces++;
    printf("%d %zu %d\n", before, total >> 20, pieces);
    return fflush(stdout);
}
