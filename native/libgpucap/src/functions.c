#include "functions.h"

#include "resolve.h"

#include <dlfcn.h>
#include <string.h>

_Atomic(void *) function_driver[FUNCTION_COUNT], function_itself[FUNCTION_COUNT];
_Atomic(unsigned) function_drivers, function_closed_drivers;
static _Atomic(void *) cuda; /* something of the driver that is loaded; NULL: not seen yet */
static _Atomic(unsigned long long) closed; /* libraries, when they were found */

static const struct {
    const char *name;
    void *hook;
} functions[FUNCTION_COUNT] = {
#define HOOK(symbol) {#symbol, (void *)symbol},
#define CALL(symbol) {#symbol, NULL},
#include "functions.def"
#undef HOOK
#undef CALL
};

static CUresult cuda_absent(void) {
    return CUDA_ERROR_NOT_FOUND;
}

static int nvml_absent(void) {
    return 13; /* NVML_ERROR_FUNCTION_NOT_FOUND */
}

static void *absent(enum function function) {
    return functions[function].name[0] == 'n' ? (void *)nvml_absent : (void *)cuda_absent;
}

static _Atomic(bool) chained[FUNCTION_COUNT]; /* a preloaded library behind this one hooks it */

static void *find(enum function function) {
    const char *name = functions[function].name;
    /* Through RTLD_NEXT first, so that a preloaded library behind this one stays in the chain; it
     * is asked only for what that chain may hook, because a failure changes the program's
     * dlerror(). libc's own dlsym, not a wrapper of somebody's: "next" must mean what comes after
     * this library. */
    dlsym_function *libc = functions[function].hook ? resolve_libc("dlsym") : NULL;
    void *found = libc ? libc(RTLD_NEXT, name) : NULL;
    void *own = resolve_driver(name);
    atomic_store_explicit(&chained[function], found && found != own, memory_order_relaxed);
    return found ? found : own;
}

/* A library that looks for the driver itself calls its own functions of the driver's names, and
 * gets our hook instead: without a driver yet, it is the one that opens it. */
void *function_find_driver(enum function function) {
    void *found = find(function);
    if (found)
        function_learn(function, found);
    else
        found = resolve_elsewhere(functions[function].name, functions[function].hook);
    return found ? found : absent(function);
}

void *function_find_itself(enum function function) {
    void *found = resolve_named_driver(functions[function].name);
    if (found)
        atomic_store_explicit(&function_itself[function], found, memory_order_release);
    else
        found = resolve_driver(functions[function].name);
    return found ? found : absent(function);
}

/* No lock: another thread may have the loader's, which the search may need, and want ours. Threads
 * that come here at the same time find the same. */
static void find_anew(void) {
    bool another = false;
    void *was = cuda;
    cuda = resolve_named_driver("cuInit");
    function_closed_drivers += was && was != cuda;
    for (enum function i = 0; i < FUNCTION_COUNT; i++) {
        void *known = atomic_load_explicit(&function_driver[i], memory_order_acquire);
        /* Not through RTLD_NEXT where that gave nothing: dlerror() is the program's. */
        void *own = known ? resolve_driver(functions[i].name) : NULL;
        if (own && chained[i])
            own = find(i);
        another |= known != own;
        atomic_store_explicit(&function_driver[i], own, memory_order_release);
        atomic_store_explicit(&function_itself[i], NULL, memory_order_release);
    }
    function_drivers += another;
}

void function_check_closed(void) {
    unsigned long long now = resolve_closed();
    if (now == atomic_load_explicit(&closed, memory_order_acquire))
        return;
    find_anew();
    atomic_store_explicit(&closed, now, memory_order_release);
}

bool function_exists(enum function function) {
    function_check_closed();
    if (function_driver[function])
        return true;
    void *found = find(function);
    if (found)
        function_learn(function, found);
    return found != NULL;
}

void function_learn(enum function function, void *pointer) {
    void *unknown = NULL;
    if (!cuda && functions[function].name[0] == 'c')
        cuda = resolve_named_driver("cuInit");
    atomic_compare_exchange_strong_explicit(&function_driver[function], &unknown, pointer,
                                            memory_order_release, memory_order_relaxed);
}

const char *function_name(enum function function) {
    return functions[function].name;
}

void *function_hook(enum function function) {
    return functions[function].hook;
}

enum function function_by_symbol(const char *symbol) {
    for (enum function i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(functions[i].name, symbol) == 0)
            return i;
    return FUNCTION_COUNT;
}
