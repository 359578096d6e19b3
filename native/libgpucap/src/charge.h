/*
 * Charging: which device pays for a call, and how much.
 *
 * Every hook that allocates does the same: reserve the bytes, call the driver with no lock held,
 * then keep the charge or give it back. A call that the driver would refuse anyway (no context, a
 * NULL argument) is not charged and not judged: it goes to the driver, whose answer it gets.
 */
#ifndef GPUCAP_CHARGE_H
#define GPUCAP_CHARGE_H

#include "account.h"
#include "fault.h"
#include "fork.h"
#include "functions.h"
#include "owned.h"

#include <stdatomic.h>

/* Nested: the driver, or a library behind us, called another hook from inside a call of ours. The
 * outer call is charged, so the inner one must not be, and it goes to the driver itself: a library
 * behind us may look the driver up by dlsym, and gets our hook. */
extern _Thread_local int charge_depth;

/* The driver that gave out what is noted was closed. That stays charged, for nothing says that it
 * was let go, but what the next driver gives out is something else, whatever its number. */
extern _Atomic(unsigned) charge_closed_drivers;
void charge_driver_closed(void);

#define ENTER(symbol, ...)                                                                         \
    do {                                                                                           \
        if (charge_depth > 0)                                                                      \
            return DRIVER_ITSELF(symbol)(__VA_ARGS__);                                             \
        fork_check();                                                                              \
        function_check_closed();                                                                   \
        if (charge_closed_drivers != function_closed_drivers)                                      \
            charge_driver_closed();                                                                \
    } while (0)

#define CALL_DRIVER(symbol, ...)                                                                   \
    ({                                                                                             \
        charge_depth++;                                                                            \
        __typeof__(DRIVER(symbol)(__VA_ARGS__)) answer_ = DRIVER(symbol)(__VA_ARGS__);             \
        charge_depth--;                                                                            \
        answer_;                                                                                   \
    })

struct place {
    int device; /* number in the account */
    CUdevice ordinal;
    uint64_t context; /* the one that is current; 0 where it does not matter */
};

/* The device of the current context; false: there is none, or it cannot be charged. */
bool charge_current(struct place *out);

/* The device with this number of the driver; false likewise. */
bool charge_ordinal(CUdevice ordinal, struct place *out);

/* This process is a forked child. */
void charge_forget(void);

/* The device that pays for memory of this type at a location; false: it is the host's, or no device
 * that can be charged. A location that is not known counts as the current context's device, or the
 * first, and so does the host for managed memory, which moves to where it is used. */
bool charge_location(const CUmemLocation *location, CUmemAllocationType type, struct place *out);

/* What the driver takes for an allocation of so many bytes: it maps large ones in pages of 2 MiB
 * and cuts small ones from such a page in steps of 512 bytes. */
uint64_t charge_rounded(uint64_t bytes);

#define CHARGE_SMALL_STEP 512u
#define CHARGE_ORDINALS   64 /* devices of the driver, at most */

/* The same in whole steps of so many bytes; at most UINT64_MAX. */
uint64_t charge_whole(uint64_t bytes, uint64_t step);

/* Takes the bytes, after giving idle pool memory back to the device if need be; false: over the
 * cap, and the program is told so. */
bool charge_reserve(const struct place *place, uint64_t bytes);

/* The same for who may try again before the program is told: account_refused() is theirs to call.
 */
bool charge_try(const struct place *place, uint64_t bytes);

void charge_return(int device, uint64_t bytes);

/* The same for what cuMemAlloc and its like were asked for, as charge_rounded() has it: small ones
 * are charged by the pages that this process needs for all of them together. */
bool charge_reserve_linear(const struct place *place, uint64_t bytes);
void charge_return_linear(int device, uint64_t bytes);

/* Gives back all of the kind that was made in a context, before `serial`. */
void charge_return_context(enum owned_kind kind, uint64_t context, int device, uint64_t serial);

/* After a release: gives the entry's bytes back if the driver did release, else notes it again. */
void charge_released(CUresult answer, enum owned_kind kind, uint64_t key,
                     const struct owned *entry);

/* a − b, and 0 where that is less than nothing. */
static inline uint64_t charge_less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* width × height, as large as can be when it overflows. */
uint64_t charge_product(uint64_t width, uint64_t height);

#endif
