/*
 * probe RESOLUTION: finds the driver's functions and obeys commands
 * (commands.h).
 *
 * RESOLUTION: linked | dlopen | procaddress | nothing. With `nothing` it ends
 * at once: the start of a process that has no business with CUDA. A driver may
 * be too old for some functions, so their names are weak here: a missing one is
 * NULL instead of an end at the start.
 */
#define CUDA_API __attribute__((weak))
#include "rows.h"

#include "commands.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *driver;

static void *linked(const char *symbol, const char *name, int version, unsigned long long flags) {
    (void)name, (void)version, (void)flags;
#define CUDA_FUNCTION(of, name_, since, stream, parameters)                                        \
    if (strcmp(symbol, #of) == 0)                                                                  \
        return (void *)of;
#define CUDA_ALIAS(of, name_, since, stream)
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS
    return NULL;
}

static void *by_dlsym(const char *symbol, const char *name, int version, unsigned long long flags) {
    (void)name, (void)version, (void)flags;
    return dlsym(driver, symbol);
}

/* As the CUDA runtime does it: one dlsym, then names with versions and flags;
 * before CUDA 12 without the word on why something is missing. */
static void *by_procaddress(const char *symbol, const char *name, int version,
                            unsigned long long flags) {
    static __typeof__(&cuGetProcAddress_v2) get;
    static __typeof__(&cuGetProcAddress) get_v1;
    CUdriverProcAddressQueryResult status;
    void *found = NULL;
    (void)symbol;
    if (!get && !get_v1) {
        get = (__typeof__(get))dlsym(driver, "cuGetProcAddress_v2");
        get_v1 = (__typeof__(get_v1))dlsym(driver, "cuGetProcAddress");
    }
    CUresult result = get      ? get(name, &found, version, flags, &status)
                      : get_v1 ? get_v1(name, &found, version, flags)
                               : CUDA_ERROR_NOT_FOUND;
    return result == CUDA_SUCCESS ? found : NULL;
}

int main(int argc, char **argv) {
    const char *resolution = argc > 1 ? argv[1] : "nothing";
    if (strcmp(resolution, "nothing") == 0)
        return 0;
    bool is_linked = strcmp(resolution, "linked") == 0;
    if (!is_linked && !(driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))) {
        fprintf(stderr, "probe: %s\n", dlerror());
        return 2;
    }
    /* What is missing is told by the command `has`. */
    resolve_all(is_linked ? linked : strcmp(resolution, "dlopen") == 0 ? by_dlsym : by_procaddress);
    serve();
    return 0;
}
