/*
 * Where dlopen and dlmopen load: a library that brings the driver with it must not get it past us.
 *
 * RTLD_DEEPBIND lets a library find the driver's functions, or libc's dlsym, before ours, and a
 * link-map list of its own (dlmopen) has a second driver in it that nobody counts. So for the
 * driver itself, for what looks up functions by itself, and for what needs one of these
 * (objects.c), the flag is left out and the list is the common one. Everything else is loaded as it
 * was asked for.
 *
 * Called by the assembly in dlopen_<machine>.S, which jumps to the next dlopen with the arguments
 * as corrected and the return address as it came: where libraries are looked for depends on the
 * caller.
 */
#include "dlopen.h"

#include "functions.h"
#include "objects.h"
#include "resolve.h"

#include <dlfcn.h>
#include <stddef.h>

static void *next(const char *symbol) {
    dlsym_function *dlsym_behind = resolve_next_dlsym();
    return dlsym_behind ? dlsym_behind(RTLD_NEXT, symbol) : NULL;
}

struct corrected gpucap_dlopen(const char *file, int flags) {
    static void *known;
    if (!known)
        known = next("dlopen");
    function_check_closed();
    if ((flags & RTLD_DEEPBIND) && objects_bring_driver(file, false))
        flags &= ~RTLD_DEEPBIND;
    return (struct corrected){known, (uintptr_t)flags};
}

struct corrected gpucap_dlmopen(intptr_t list, const char *file, int *flags) {
    static void *known;
    if (!known)
        known = next("dlmopen");
    function_check_closed();
    bool apart = list != LM_ID_BASE;
    if ((apart || (*flags & RTLD_DEEPBIND)) && objects_bring_driver(file, apart)) {
        list = LM_ID_BASE;
        *flags &= ~RTLD_DEEPBIND;
    }
    return (struct corrected){known, (uintptr_t)list};
}
