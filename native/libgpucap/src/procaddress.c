/*
 * cuGetProcAddress: the driver is asked first, and the pointer that it gives is exchanged for our
 * hook of that very function. So the version and the stream variant are right by construction, and
 * a function that is not hooked is never touched.
 */
#include "charge.h"
#include "resolve.h"

#include <string.h>

/* The rows of the table of functions, for drivers whose cuGetProcAddress does not give the exported
 * addresses (below). */
enum stream { ANY, LEGACY, PER_THREAD };
static const struct {
    const char *symbol, *name;
    int since;
    enum stream stream;
} variants[] = {
#define CUDA_FUNCTION(symbol, name, since, stream, parameters) {#symbol, #name, since, stream},
#define CUDA_ALIAS(symbol, name, since, stream)                {#symbol, #name, since, stream},
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS
};
#define NEWEST_KNOWN 13000

static void *by_pointer(const char *name, const void *pointer) {
    size_t length = strlen(name);
    for (enum function i = 0; i < FUNCTION_COUNT; i++) {
        /* The symbol may carry more than the name (_v2, _ptsz), or another one by an alias. */
        bool alike = function_hook(i) && strncmp(function_name(i), name, length) == 0;
        /* Another preloaded library may stand between us and the driver's own function. */
        if (alike && (function_real(i) == pointer || resolve_driver(function_name(i)) == pointer))
            return function_hook(i);
    }
    return NULL;
}

static void *by_version(const char *name, int version, uint64_t flags) {
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const char *symbol = NULL;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        bool fits = variants[i].stream == ANY || (variants[i].stream == PER_THREAD) == per_thread;
        if (fits && variants[i].since <= version && strcmp(variants[i].name, name) == 0)
            symbol = variants[i].symbol;
    }
    enum function function = symbol ? function_by_symbol(symbol) : FUNCTION_COUNT;
    return function < FUNCTION_COUNT ? function_hook(function) : NULL;
}

/* Does this driver give the addresses that it exports? Where it does, a pointer that is none of
 * them is a function that we do not know, and must be left alone. */
static bool gives_exports(void) {
    static _Atomic(int) known; /* 1 yes, 2 no */
    static _Atomic(unsigned) of;
    if (!known || of != function_drivers) {
        void *pointer = NULL;
        if (function_exists(FUNCTION_cuGetProcAddress_v2))
            CALL_DRIVER(cuGetProcAddress_v2, "cuMemAlloc", &pointer, 3020, 0, NULL);
        else
            CALL_DRIVER(cuGetProcAddress, "cuMemAlloc", &pointer, 3020, 0);
        of = function_drivers;
        known = pointer == resolve_driver("cuMemAlloc_v2") ? 1 : 2;
    }
    return known == 1;
}

static void exchange(const char *name, void **pointer, int version, uint64_t flags) {
    void *hook = by_pointer(name, *pointer);
    if (!hook && !gives_exports() && version <= NEWEST_KNOWN)
        hook = by_version(name, version, flags);
    if (hook)
        *pointer = hook;
}

CUresult cuGetProcAddress(const char *symbol, void **pointer, int version, uint64_t flags) {
    ENTER(cuGetProcAddress, symbol, pointer, version, flags);
    CUresult answer = CALL_DRIVER(cuGetProcAddress, symbol, pointer, version, flags);
    if (answer == CUDA_SUCCESS && symbol && pointer && *pointer)
        exchange(symbol, pointer, version, flags);
    return answer;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pointer, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    ENTER(cuGetProcAddress_v2, symbol, pointer, version, flags, status);
    CUresult answer = CALL_DRIVER(cuGetProcAddress_v2, symbol, pointer, version, flags, status);
    if (answer == CUDA_SUCCESS && symbol && pointer && *pointer)
        exchange(symbol, pointer, version, flags);
    return answer;
}
