/*
 * libfinds.so: a library that opens the driver and looks its functions up by itself, as NVIDIA's
 * runtime does. take_pieces(mib) takes pieces until refused. The driver's path is in FINDS_DRIVER.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int take_pieces(unsigned long mib);

static void *find(void *driver, const char *name) {
    void *found = dlsym(driver, name);
    if (!found) {
        fprintf(stderr, "finds: %s\n", dlerror());
        exit(3);
    }
    return found;
}

int take_pieces(unsigned long mib) {
    const char *path = getenv("FINDS_DRIVER");
    void *driver = dlopen(path ? path : "libcuda.so.1", RTLD_NOW), *context;
    unsigned long long pointer;
    int count = 0;
    if (!driver)
        return -1;
    int (*alloc)(unsigned long long *, size_t) = find(driver, "cuMemAlloc_v2");
    int (*retain)(void **, int) = find(driver, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = find(driver, "cuCtxSetCurrent");
    if (((int (*)(unsigned))find(driver, "cuInit"))(0) || retain(&context, 0) || set(context))
        return -1;
    while (count < 64 && alloc(&pointer, mib << 20) == 0)
        count++;
    return count;
}
