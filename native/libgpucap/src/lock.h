/*
 * A lock for the threads of this process: one word, zero when free. Not a pthread mutex, because
 * before glibc 2.34 those need libpthread, which a preloaded library must not drag into every
 * program; and because a forked child can set it free by writing zero.
 */
#ifndef GPUCAP_LOCK_H
#define GPUCAP_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock {
    _Atomic(int) word; /* 0 free, 1 held, 2 held and somebody waits */
};

static inline void lock_take(struct lock *lock) {
    int expected = 0;
    if (atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire,
                                                memory_order_relaxed))
        return;
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static inline void lock_free(struct lock *lock) {
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#endif
