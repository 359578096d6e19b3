/*
 * A lock for the threads of this process: one word, zero when free. Not a pthread mutex, because
 * before glibc 2.34 those need libpthread, which a preloaded library must not drag into every
 * program; and because a forked child can set it free by writing zero. Whoever holds one is not
 * cancelled (pthread_cancel) until it is free again: it would stay held for ever.
 */
#ifndef GPUCAP_LOCK_H
#define GPUCAP_LOCK_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock {
    _Atomic(int) word; /* 0 free, 1 held, 2 held and somebody waits */
    int cancellation;  /* of the thread that holds it: what it was before */
};

/* pthread_setcancelstate, where libc has it; the state before. */
int lock_cancellation(int state);

static inline void lock_take(struct lock *lock) {
    int expected = 0, before = lock_cancellation(PTHREAD_CANCEL_DISABLE);
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
            syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    lock->cancellation = before;
}

static inline void lock_free(struct lock *lock) {
    int before = lock->cancellation;
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
        syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    lock_cancellation(before);
}

#endif
