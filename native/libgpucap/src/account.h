/*
 * What this container holds of each device, against its cap.
 *
 * The figures live in the ledger that the container's processes share; where that cannot be used,
 * in this process alone. A device is a small number that stays the same for the life of the
 * process.
 */
#ifndef GPUCAP_ACCOUNT_H
#define GPUCAP_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_DEVICES 16
#define ACCOUNT_BEYOND                                                                             \
    ACCOUNT_DEVICES /* all devices that are too many: nothing is given out there */
#define ACCOUNT_NUMBERS (ACCOUNT_DEVICES + 1)

enum account {
    ACCOUNT_MEMORY, /* used_bytes of the ledger */
    ACCOUNT_CONTEXT /* context_bytes */
};

/* The number of the device with this UUID, or ACCOUNT_BEYOND. */
int account_device(const uint8_t uuid[16]);

/* Takes bytes of the device if the container stays within its cap; false: it would not. Of contexts
 * for one, and so they are given back. */
bool account_take(int device, enum account what, uint64_t bytes);

/* The program is told that there is not enough memory: for who asks how often that was. */
void account_refused(int device);

/* Gives bytes back. More than there is (the agent rewrites context_bytes) leaves none. */
void account_give(int device, enum account what, uint64_t bytes);

/* Takes `more` and gives back `less` at once, whatever the cap: what the driver did is a fact. */
void account_settle(int device, uint64_t more, uint64_t less);

/* The least that a process of the container is charged for each of its contexts on the device; 0:
 * none has any. */
uint64_t account_context(int device);

/* The turn to make a context on the device while nobody knows what one takes: one process of the
 * container at a time. false: others have had it for too long. */
bool account_turn(int device);
void account_turn_over(int device);

/* Whose turn it is has made one, was charged a guess, `each`, and reads what all have `in_use` of
 * the device: *each becomes what that has grown by since the container's last context, beyond what
 * the container is charged. Before its first one nobody has looked, so there up to `most` more than
 * the guess is believed, and what is more is others'. All contexts of this process are charged that
 * much. false: this one does not fit and has to go. */
bool account_measured(int device, uint64_t in_use, uint64_t most, uint64_t *each);

/* All that the container holds of the device, contexts included. */
uint64_t account_held(int device);

/* Memory that this process was charged for may be held by others of the container from now on, who
 * know it by this number. false: it cannot be noted, and it stays this process's alone. */
bool account_share(int device, uint64_t id, uint64_t bytes);

/* The numbers that are noted; how many. */
#define ACCOUNT_SHARED 64
unsigned account_shared(uint64_t ids[ACCOUNT_SHARED]);

/* This process holds it as well, and pays if nobody else does; false: it is not known. */
bool account_join(uint64_t id, int *device, uint64_t *bytes);

/* This process holds it once less. If it paid, the next holder does, or it is given back. `made`:
 * it was the one who shared it, and gives it back also where that is not known any more. */
void account_let_go(int device, uint64_t id, uint64_t bytes, bool made);

/* This process is a forked child: it holds nothing and has no slot. */
void account_forget(void);

#endif
