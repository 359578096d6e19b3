#include "lock.h"

#include "resolve.h"

#include <stdint.h>

typedef int set_state(int state, int *before);

static int set_nothing(int state, int *before) {
    *before = state;
    return 0;
}

int lock_cancellation(int state) {
    static _Atomic(uintptr_t) known; /* not linked with: before glibc 2.34 it is in libpthread */
    uintptr_t set = atomic_load_explicit(&known, memory_order_relaxed);
    if (!set) {
        void *found = resolve_libc("pthread_setcancelstate");
        set = found ? (uintptr_t)found : (uintptr_t)set_nothing;
        atomic_store_explicit(&known, set, memory_order_relaxed);
    }
    int before = state;
    ((set_state *)set)(state, &before);
    return before;
}
