#include "account.h"

#include "fault.h"
#include "ledger_file.h"
#include "limit.h"
#include "lock.h"
#include "log.h"
#include "os.h"
#include "slots.h"

#include <string.h>

#define CHECK_MILLISECONDS 100u

static_assert(ACCOUNT_DEVICES == LEDGER_DEVICES, "one table");

/* All under `lock`. `mine` repeats what this process's slot says, so that the process can go on
 * when the ledger is lost: with a new one, or alone. */
static struct {
    struct lock lock;
    bool opened; /* the ledger was looked for; not found: `ledger.file` is NULL */
    struct ledger_mapping ledger;
    struct ledger_slot *slot; /* NULL: none yet */
    struct process_key self;
    uint64_t next_check; /* milliseconds: is the ledger still the file on disk? */
    uint64_t next_reap;
    int devices;
    uint8_t uuid[ACCOUNT_DEVICES][16];
    int index[ACCOUNT_DEVICES]; /* in the ledger's table; -1: not there */
    struct ledger_held mine[ACCOUNT_DEVICES];
} state;

static uint64_t *field(struct ledger_held *held, enum account what) {
    return what == ACCOUNT_MEMORY ? &held->used_bytes : &held->context_bytes;
}

static void add(uint64_t *word, uint64_t bytes) {
    __atomic_store_n(word, *word + bytes, __ATOMIC_RELAXED);
}

static void subtract(uint64_t *word, uint64_t bytes) {
    __atomic_store_n(word, *word > bytes ? *word - bytes : 0, __ATOMIC_RELAXED);
}

static void drop_ledger(void) {
    ledger_close(&state.ledger);
    state.slot = NULL;
}

/* The ledger's lock, with a slot of ours in it; false: this process counts alone. */
static bool enter(void) {
    uint64_t now = os_milliseconds();
    if (!state.opened || (state.ledger.file && now >= state.next_check)) {
        state.next_check = now + CHECK_MILLISECONDS;
        if (state.opened && !ledger_is_current(&state.ledger)) {
            drop_ledger(); /* truncated or replaced under us; touching the mapping could be fatal */
            state.opened = false;
        }
        if (!state.opened) {
            state.self = slots_self();
            ledger_open(&state.ledger);
            state.self.file = state.ledger.descriptor;
            state.opened = true;
        }
    }
    struct ledger_file *file = state.ledger.file;
    if (!file)
        return false;
    if (!ledger_lock(file)) {
        drop_ledger();
        return false;
    }
    FAULT(locked);
    if (state.slot && state.slot->pid == state.self.pid)
        return true;
    state.slot = slots_claim(file, &state.self);
    if (!state.slot) {
        ledger_unlock(file);
        log_once("ledger: all %u slots are taken; this process counts for itself", LEDGER_SLOTS);
        drop_ledger();
        return false;
    }
    for (int i = 0; i < state.devices; i++) {
        state.index[i] = slots_device(file, state.uuid[i]);
        if (state.index[i] >= 0)
            state.slot->device[state.index[i]] = state.mine[i];
    }
    return true;
}

static void leave(bool shared) {
    if (shared) {
        FAULT(unlocking);
        ledger_unlock(state.ledger.file);
        FAULT(unlocked);
    }
}

static struct ledger_held *in_ledger(bool shared, int device) {
    return shared && state.index[device] >= 0 ? &state.slot->device[state.index[device]] : NULL;
}

static uint64_t held(bool shared, int device) {
    if (in_ledger(shared, device))
        return slots_sum(state.ledger.file, (unsigned)state.index[device]);
    return state.mine[device].used_bytes + state.mine[device].context_bytes;
}

static bool fits(bool shared, int device, uint64_t bytes, uint64_t cap) {
    uint64_t now = held(shared, device);
    return bytes <= cap && now <= cap - bytes;
}

int account_device(const uint8_t uuid[16]) {
    lock_take(&state.lock);
    int device = 0;
    while (device < state.devices && memcmp(state.uuid[device], uuid, 16) != 0)
        device++;
    if (device == ACCOUNT_DEVICES) {
        device = -1;
        log_once("more than %d devices: those beyond have no cap", ACCOUNT_DEVICES);
    } else if (device == state.devices) {
        bool shared = enter();
        memcpy(state.uuid[device], uuid, 16);
        state.index[device] = shared ? slots_device(state.ledger.file, uuid) : -1;
        state.devices++;
        leave(shared);
    }
    lock_free(&state.lock);
    return device;
}

bool account_take(int device, enum account what, uint64_t bytes) {
    uint64_t cap = limit_bytes();
    lock_take(&state.lock);
    FAULT(take);
    bool shared = enter();
    bool fit = fits(shared, device, bytes, cap);
    if (!fit && shared) {
        slots_reap(state.ledger.file, &state.self);
        fit = fits(shared, device, bytes, cap);
    }
    if (fit) {
        struct ledger_held *slot = in_ledger(shared, device);
        if (slot)
            add(field(slot, what), bytes);
        FAULT(taken);
        add(field(&state.mine[device], what), bytes);
    }
    leave(shared);
    lock_free(&state.lock);
    return fit;
}

static void change(int device, enum account what, uint64_t more, uint64_t less) {
    if (more == less)
        return;
    lock_take(&state.lock);
    FAULT(give);
    bool shared = enter();
    struct ledger_held *slot = in_ledger(shared, device);
    if (slot) {
        uint64_t *word = field(slot, what), sum = *word + more;
        __atomic_store_n(word, sum > less ? sum - less : 0, __ATOMIC_RELAXED);
    }
    FAULT(given);
    add(field(&state.mine[device], what), more);
    subtract(field(&state.mine[device], what), less);
    leave(shared);
    lock_free(&state.lock);
}

void account_give(int device, enum account what, uint64_t bytes) {
    change(device, what, 0, bytes);
}

void account_settle(int device, uint64_t more, uint64_t less) {
    change(device, ACCOUNT_MEMORY, more, less);
}

uint64_t account_held(int device) {
    lock_take(&state.lock);
    bool shared = enter();
    if (shared && os_milliseconds() >= state.next_reap) {
        /* So that what a view shows does not include the dead; not at every call of a busy program.
         */
        slots_reap(state.ledger.file, &state.self);
        state.next_reap = os_milliseconds() + CHECK_MILLISECONDS;
    }
    uint64_t bytes = held(shared, device);
    leave(shared);
    lock_free(&state.lock);
    return bytes;
}

void account_forget(void) {
    /* The mapping is inherited and stays good; the slot and the figures are the parent's. */
    struct ledger_mapping ledger = state.ledger;
    memset(&state, 0, sizeof state);
    state.ledger = ledger;
    drop_ledger();
}
