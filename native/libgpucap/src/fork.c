#include "fork.h"

#include "account.h"
#include "charge.h"
#include "contexts.h"
#include "keep.h"
#include "limit.h"
#include "log.h"
#include "owned.h"
#include "pools.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define PAGE 65536 /* the largest that aarch64 has; a multiple of all others */

_Atomic(uint32_t *) fork_mark;
static uint32_t always_look; /* stays 0: without the kernel's help every check takes the slow way */
static _Atomic(pid_t) state_owner;
static _Alignas(PAGE) uint8_t wiped[PAGE];

static uint32_t *new_mark(void) {
    return madvise(wiped, sizeof wiped, MADV_WIPEONFORK) == 0 ? (uint32_t *)wiped : &always_look;
}

void fork_check_slow(void) {
    pid_t self = getpid(), owner = state_owner;
    if (owner != self && atomic_compare_exchange_strong(&state_owner, &owner, self) && owner != 0) {
        /* A fresh child has one thread, so nobody uses what is reset here. A lock that another
         * thread of the parent held at the fork would never be freed. */
        log_forget();
        limit_forget();
        account_forget();
        charge_forget();
        owned_forget();
        keep_forget();
        pools_forget();
        contexts_forget();
    }
    if (!fork_mark)
        fork_mark = new_mark(); /* the same for every thread that comes here */
    uint32_t *mark = fork_mark;
    if (mark != &always_look)
        __atomic_store_n(mark, 1, __ATOMIC_RELAXED);
}
