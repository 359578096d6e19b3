/*
 * What dlsym answers: our hook, where the program asks for a driver function that we hook and the
 * driver has it; in every other case exactly what the next dlsym answers to the same caller.
 *
 * Called by the assembly in dlsym_<machine>.S, which jumps to the next dlsym when `handled` is
 * zero: RTLD_NEXT and RTLD_DEFAULT depend on the caller's return address, so no C function may
 * stand between.
 */
#include "functions.h"
#include "resolve.h"

#include <dlfcn.h>
#include <stdint.h>

struct answer {
    void *pointer; /* the answer, or the function to jump to */
    uintptr_t handled;
};

struct answer gpucap_dlsym(void *handle, const char *symbol);

static struct answer pass_on(void) {
    return (struct answer){(void *)resolve_next_dlsym(), 0};
}

/* "cu…" or "nv…"; without strncmp, which may be the caller's own (resolve.c). */
static bool may_be_ours(const char *symbol) {
    return (symbol[0] == 'c' && symbol[1] == 'u') || (symbol[0] == 'n' && symbol[1] == 'v');
}

struct answer gpucap_dlsym(void *handle, const char *symbol) {
    /* RTLD_NEXT: the natural search finds our exported hook exactly when the caller comes before
     * us. */
    if (!symbol || handle == RTLD_NEXT || !may_be_ours(symbol))
        return pass_on();
    enum function function = function_by_symbol(symbol);
    void *hook = function < FUNCTION_COUNT ? function_hook(function) : NULL;
    dlsym_function *next = resolve_next_dlsym();
    if (!hook || !next)
        return pass_on();

    void *found = next(handle, symbol);
    if (found == hook) {
        /* A search through all libraries met our own export. Without a driver it does not exist,
         * and the search behind us says so with the right dlerror(). */
        return (struct answer){function_exists(function) ? hook : next(RTLD_NEXT, symbol), 1};
    }
    if (found && resolve_in_driver(symbol, found)) {
        function_learn(function, found);
        return (struct answer){hook, 1};
    }
    if (handle == RTLD_DEFAULT)
        return pass_on(); /* from here it was searched without the caller's own libraries */
    return (struct answer){found, 1};
}
