#include "shared.h"

#include <string.h>

struct ledger_shared *shared_find(struct ledger_file *file, uint64_t id) {
    struct ledger_shared *shared = file->header.shared;
    for (unsigned i = 0; i < LEDGER_SHARED; i++)
        if (shared[i].id == id)
            return &shared[i];
    return NULL;
}

bool shared_make(struct ledger_file *file, unsigned slot, struct ledger_shared memory) {
    struct ledger_shared *place = shared_find(file, memory.id);
    if (!place)
        place = shared_find(file, 0);
    /* What nobody holds stands there for those who may yet import it. */
    for (unsigned i = 0; i < LEDGER_SHARED && !place; i++)
        if (!file->header.shared[i].holder[0])
            place = &file->header.shared[i];
    if (!place)
        return false;
    memory.holder[0] = (uint16_t)(slot + 1);
    *place = memory;
    return true;
}

bool shared_join(struct ledger_shared *shared, unsigned slot, bool *joined) {
    unsigned next = 0;
    while (next < LEDGER_HOLDERS && shared->holder[next])
        next++;
    *joined = next < LEDGER_HOLDERS;
    if (*joined)
        shared->holder[next] = (uint16_t)(slot + 1);
    return next == 0;
}

static void charge(struct ledger_file *file, const struct ledger_shared *shared, unsigned holder) {
    if (!holder || holder > LEDGER_SLOTS || shared->device >= LEDGER_DEVICES)
        return;
    uint64_t *word = &file->slot[holder - 1].device[shared->device].used_bytes;
    uint64_t sum, now = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (__builtin_add_overflow(now, shared->bytes, &sum))
        sum = UINT64_MAX;
    __atomic_store_n(word, sum, __ATOMIC_RELAXED);
    file->header.unsummed = 1;
}

/* Takes a holder out of the row; if it was the first, the one who comes first then is charged. That
 * is done before: who is killed in between leaves too much charged, until the next one ends. */
static void take_out(struct ledger_file *file, struct ledger_shared *shared, unsigned place) {
    unsigned after = LEDGER_HOLDERS - 1 - place;
    if (place == 0 && shared->holder[1] != shared->holder[0])
        charge(file, shared, shared->holder[1]);
    memmove(&shared->holder[place], &shared->holder[place + 1], after * sizeof shared->holder[0]);
    shared->holder[LEDGER_HOLDERS - 1] = 0;
}

bool shared_leave(struct ledger_file *file, struct ledger_shared *shared, unsigned slot) {
    uint16_t own = (uint16_t)(slot + 1);
    unsigned place = LEDGER_HOLDERS;
    while (place && shared->holder[place - 1] != own) /* the one that does not pay, if any */
        place--;
    if (!place)
        return false;
    bool paid = shared->holder[0] == own;
    take_out(file, shared, place - 1);
    if (!shared->holder[0])
        shared->id = 0;
    return paid && shared->holder[0] != own;
}

void shared_slot_gone(struct ledger_file *file, unsigned slot) {
    for (unsigned i = 0; i < LEDGER_SHARED; i++) {
        struct ledger_shared *shared = &file->header.shared[i];
        for (unsigned place = LEDGER_HOLDERS; shared->id && place; place--)
            if (shared->holder[place - 1] == slot + 1)
                take_out(file, shared, place - 1);
    }
}
