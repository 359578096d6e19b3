/*
 * A forked child holds nothing: no memory of the device, no slot in the ledger, no locks.
 *
 * fork_check() notices the fork at the first hook that the child calls, and forgets the parent's
 * state. It reads one word of a page that the kernel empties in every child, however it was made
 * (MADV_WIPEONFORK, Linux 4.14), raw clone() included; where the kernel cannot do that, it compares
 * the process id, which costs a system call.
 */
#ifndef GPUCAP_FORK_H
#define GPUCAP_FORK_H

#include <stdint.h>

extern _Atomic(uint32_t *) fork_mark; /* its word is 1 in the process that set it */
void fork_check_slow(void);

static inline void fork_check(void) {
    uint32_t *mark = fork_mark;
    if (!mark || __atomic_load_n(mark, __ATOMIC_RELAXED) != 1)
        fork_check_slow();
}

#endif
