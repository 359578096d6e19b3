#include "fork.h"

#include "account.h"
#include "lock.h"
#include "owned.h"
#include "pools.h"

#include <stdatomic.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

_Atomic(uint32_t *) fork_mark;
static uint32_t always_look; /* stays 0: without the kernel's help every check takes the slow way */
static _Atomic(pid_t) state_owner;

static uint32_t *new_mark(void) {
    uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return &always_look;
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
        munmap(page, 4096);
        return &always_look;
    }
    return page;
}

void fork_check_slow(void) {
    pid_t self = getpid(), owner = state_owner;
    if (owner != self && atomic_compare_exchange_strong(&state_owner, &owner, self) && owner != 0) {
        /* A fresh child has one thread, so nobody uses what is reset here. A lock that another thread
         * of the parent held at the fork would never be freed. */
        account_forget();
        owned_forget();
        pools_forget();
    }
    uint32_t *mark = fork_mark;
    if (!mark) {
        uint32_t *fresh = new_mark();
        if (!atomic_compare_exchange_strong(&fork_mark, &mark, fresh)) {
            if (fresh != &always_look)
                munmap(fresh, 4096);
        } else {
            mark = fresh;
        }
    }
    if (mark != &always_look)
        *(volatile uint32_t *)mark = 1;
}
