#include "account.h"

#include "fault.h"
#include "ledger_file.h"
#include "limit.h"
#include "lock.h"
#include "log.h"
#include "os.h"
#include "shared.h"
#include "slots.h"

#include <string.h>

#define CHECK_MILLISECONDS 100u
#define MIB_SHIFT          20
#define TURN_MILLISECONDS  5000

static_assert(ACCOUNT_DEVICES == LEDGER_DEVICES, "one table");

/* How this process counts at the moment. */
enum footing {
    SHARED, /* in the ledger, whose lock it has */
    ALONE,  /* for itself: there is no folder to share a ledger in */
    AWAY    /* the ledger cannot be used: what it holds it may give back, and take nothing */
};

/* All under `lock`. `mine` repeats what this process's slot says, so that it can be said again in
 * another ledger. */
static struct {
    struct lock lock;
    struct ledger_mapping ledger; /* its file is NULL: none */
    bool alone;                   /* there is none because there is nowhere for one */
    bool impatient;               /* its lock was waited for in vain, the last time */
    struct ledger_slot *slot;     /* NULL: none yet */
    struct process_key self;
    uint64_t next_check; /* milliseconds: is the ledger still the file on disk? 0: never looked */
    uint64_t next_reap;
    uint64_t next_peak; /* for the sake of a peak */
    int devices;
    uint8_t uuid[ACCOUNT_DEVICES][16];
    int index[ACCOUNT_DEVICES]; /* in the ledger's table; -1: not there */
    struct ledger_held mine[ACCOUNT_DEVICES];
    uint16_t contexts[ACCOUNT_DEVICES];
} state;

static uint64_t *mine(int device, enum account what) {
    struct ledger_held *held = &state.mine[device];
    return what == ACCOUNT_MEMORY ? &held->used_bytes : &held->context_bytes;
}

static void drop_ledger(void) {
    ledger_close(&state.ledger);
    state.slot = NULL;
}

/* Is the ledger still the file on disk, and its descriptor still ours? If not, a new start. */
static void check(uint64_t now) {
    state.next_check = now + CHECK_MILLISECONDS;
    if (state.ledger.file && !ledger_is_current(&state.ledger))
        drop_ledger(); /* truncated or replaced under us; touching the mapping could be fatal */
    bool reopened = state.ledger.file && ledger_reopened(&state.ledger);
    if (!state.ledger.file) {
        state.self = slots_self();
        state.alone = ledger_open(&state.ledger) == LEDGER_NOWHERE;
    }
    state.self.file = state.ledger.descriptor;
    if (reopened && state.slot)
        slots_lock(state.ledger.file, state.slot, &state.self);
}

static bool has_slot(void) {
    return state.slot && state.slot->pid == state.self.pid;
}

static bool claim(struct ledger_file *file) {
    state.slot = slots_claim(file, &state.self);
    if (!state.slot) {
        log_once("ledger: all %u slots are taken: memory is refused until one is free",
                 LEDGER_SLOTS);
        return false;
    }
    for (int i = 0; i < state.devices; i++)
        state.index[i] = -1;
    state.next_peak = os_milliseconds() + CHECK_MILLISECONDS; /* a claim has looked for the dead */
    return true;
}

/* Says in our slot what we hold of devices that it does not know yet. */
static void list_devices(struct ledger_file *file) {
    for (int i = 0; i < state.devices; i++) {
        if (state.index[i] >= 0 || (state.index[i] = slots_device(file, state.uuid[i])) < 0)
            continue;
        state.slot->device[state.index[i]] = state.mine[i];
        state.slot->contexts[state.index[i]] = state.contexts[i];
        slots_now_slotted(file, (unsigned)state.index[i], &state.mine[i]);
        file->header.unsummed = 1;
    }
}

/* The ledger's lock, with a slot of ours in it; or how it is without. */
static enum footing enter(void) {
    uint64_t now = os_milliseconds();
    if (now >= state.next_check)
        check(now);
    struct ledger_file *file = state.ledger.file;
    if (!file)
        return state.alone ? ALONE : AWAY;
    bool locked = ledger_lock(file, state.impatient);
    state.impatient = !locked;
    if (!locked) {
        if (!ledger_replace_dead(&state.ledger))
            return AWAY;
        state.next_check = 0;
        state.impatient = false;
        return enter(); /* in the new one */
    }
    FAULT(locked);
    if (has_slot() || claim(file)) {
        list_devices(file);
        return SHARED;
    }
    ledger_unlock(file);
    return AWAY;
}

static void leave(enum footing footing) {
    if (footing == SHARED) {
        FAULT(unlocking);
        ledger_unlock(state.ledger.file);
        FAULT(unlocked);
    }
}

static uint64_t held(enum footing footing, int device) {
    struct ledger_file *file = state.ledger.file;
    bool listed = file && state.index[device] >= 0;
    if (listed && footing == SHARED)
        return slots_sum(file, (unsigned)state.index[device]);
    if (listed && footing == AWAY)
        return slots_sum_unlocked(file, (unsigned)state.index[device]);
    return state.mine[device].used_bytes + state.mine[device].context_bytes;
}

static bool fits(enum footing footing, int device, uint64_t bytes, uint64_t cap) {
    if (cap == LIMIT_NONE)
        return true;
    if (footing == AWAY || (footing == SHARED && state.index[device] < 0))
        return false;
    uint64_t now = held(footing, device);
    return bytes <= cap && now <= cap - bytes;
}

/* What another process of the container left to this one was written into our slot alone. */
static void take_over(int device, enum account what, uint64_t *word) {
    const struct ledger_held *held = &state.slot->device[state.index[device]];
    if (what == ACCOUNT_MEMORY && held->used_bytes > *word)
        *word = held->used_bytes;
}

static bool is_listed(enum footing footing, int device) {
    return footing != ALONE && state.ledger.file && has_slot() && state.index[device] >= 0;
}

static void count_context(enum footing footing, int device, int by) {
    uint16_t *count = &state.contexts[device];
    *count = (uint16_t)(*count || by > 0 ? *count + by : 0);
    if (is_listed(footing, device))
        state.slot->contexts[state.index[device]] = *count;
}

/* Notes the change in the slot, if there is one, and in what repeats it. */
static void note(enum footing footing, int device, enum account what, uint64_t more,
                 uint64_t less) {
    uint64_t *word = mine(device, what);
    bool listed = is_listed(footing, device);
    if (listed && footing == SHARED)
        take_over(device, what, word);
    uint64_t sum = *word + more;
    if (listed)
        slots_change(state.ledger.file, state.slot, (unsigned)state.index[device], what, more, less,
                     footing == SHARED);
    FAULT(noted);
    *word = sum > less ? sum - less : 0;
}

static void mark_peak(enum footing footing, int device) {
    if (footing != SHARED || state.index[device] < 0)
        return;
    unsigned index = (unsigned)state.index[device];
    if (!slots_is_peak(state.ledger.file, index))
        return;
    uint64_t now = os_milliseconds();
    if (now >= state.next_peak) { /* the dead are in no peak; looked for not at every step */
        slots_reap_when_due(state.ledger.file, &state.self);
        state.next_peak = now + CHECK_MILLISECONDS;
    }
    slots_mark_peak(state.ledger.file, index);
}

static int number_of(const uint8_t uuid[16]) {
    int device = 0;
    while (device < state.devices && memcmp(state.uuid[device], uuid, 16) != 0)
        device++;
    if (device == ACCOUNT_DEVICES) {
        log_once("more than %d devices: those beyond get no memory under a cap", ACCOUNT_DEVICES);
    } else if (device == state.devices) {
        memcpy(state.uuid[device], uuid, 16);
        state.index[device] = -1;
        state.devices++;
    }
    return device;
}

int account_device(const uint8_t uuid[16]) {
    lock_take(&state.lock);
    int device = number_of(uuid);
    lock_free(&state.lock);
    return device;
}

bool account_take(int device, enum account what, uint64_t bytes) {
    if (device == ACCOUNT_BEYOND)
        return limit_bytes() == LIMIT_NONE;
    lock_take(&state.lock);
    FAULT(take);
    enum footing footing = enter();
    uint64_t cap = limit_bytes(); /* which may have changed while the ledger was waited for */
    bool fit = fits(footing, device, bytes, cap);
    if (!fit && footing == SHARED) {
        slots_reap(state.ledger.file, &state.self);
        fit = fits(footing, device, bytes, cap);
    }
    if (fit) {
        note(footing, device, what, bytes, 0);
        if (what == ACCOUNT_CONTEXT)
            count_context(footing, device, 1);
        mark_peak(footing, device);
    }
    leave(footing);
    lock_free(&state.lock);
    return fit;
}

void account_refused(int device) {
    if (device == ACCOUNT_BEYOND)
        return;
    lock_take(&state.lock);
    /* Who has just waited for the ledger in vain does not wait once more for the sake of a count.
     */
    enum footing footing = state.impatient ? AWAY : enter();
    if (footing == SHARED && state.index[device] >= 0)
        slots_mark_refused(state.ledger.file, (unsigned)state.index[device]);
    leave(footing);
    lock_free(&state.lock);
}

static void change(int device, enum account what, uint64_t more, uint64_t less) {
    if ((more == less && what == ACCOUNT_MEMORY) || device == ACCOUNT_BEYOND)
        return;
    lock_take(&state.lock);
    FAULT(give);
    enum footing footing = enter();
    note(footing, device, what, more, less);
    if (what == ACCOUNT_CONTEXT)
        count_context(footing, device, -1);
    if (more > less)
        mark_peak(footing, device);
    leave(footing);
    lock_free(&state.lock);
}

void account_give(int device, enum account what, uint64_t bytes) {
    change(device, what, 0, bytes);
}

void account_settle(int device, uint64_t more, uint64_t less) {
    change(device, ACCOUNT_MEMORY, more, less);
}

uint64_t account_context(int device) {
    if (device == ACCOUNT_BEYOND)
        return 0;
    lock_take(&state.lock);
    enum footing footing = enter();
    uint64_t least = 0;
    if (footing == SHARED && state.index[device] >= 0) {
        slots_reap_when_due(state.ledger.file, &state.self); /* of the dead nothing is learned */
        least = slots_least_context(state.ledger.file, (unsigned)state.index[device]);
    }
    leave(footing);
    lock_free(&state.lock);
    return least;
}

static bool turn(int device, bool take) {
    lock_take(&state.lock);
    enum footing footing = enter();
    bool done = true;
    if (footing == SHARED && state.index[device] >= 0)
        done = slots_turn(&state.self, (unsigned)state.index[device], take);
    leave(footing);
    lock_free(&state.lock);
    return done;
}

bool account_turn(int device) {
    static const struct timespec pause = {.tv_nsec = 1000000};
    if (device == ACCOUNT_BEYOND)
        return true;
    for (int i = 0; i < TURN_MILLISECONDS; i++, nanosleep(&pause, NULL))
        if (turn(device, true))
            return true;
    return false;
}

void account_turn_over(int device) {
    if (device != ACCOUNT_BEYOND)
        turn(device, false);
}

/* What a new context takes beyond what it was charged. */
static uint64_t context_beyond(const struct ledger_device *device, bool first, uint64_t others,
                               uint64_t most) {
    if (first)
        return others <= most ? others : 0;
    uint64_t before = (uint64_t)device->others_mib << MIB_SHIFT;
    uint64_t more = others > before ? others - before : 0;
    return more < most ? more : most;
}

/* Charges the process's other contexts in any case, and this one if there is room. */
static bool measured(unsigned index, int device, uint64_t in_use, uint64_t most, uint64_t *each) {
    struct ledger_header *header = &state.ledger.file->header;
    slots_reap(state.ledger.file, &state.self);
    uint64_t held = slots_sum(state.ledger.file, index);
    uint64_t others = in_use > held ? in_use - held : 0, guess = *each;
    uint64_t charged = state.slot->device[index].context_bytes;
    bool first = header->total[index].context_bytes <= guess;
    uint64_t beyond = context_beyond(&header->device[index], first, others, most);
    *each += beyond;
    uint64_t before = beyond && state.contexts[device] ? *each * (state.contexts[device] - 1u) : 0;
    uint64_t least = charged > guess ? charged - guess : 0; /* the agent may have written there */
    before = before > least ? before : least;
    bool fit =
        before + *each <= charged || fits(SHARED, device, before + *each - charged, limit_bytes());
    uint64_t all = before + (fit ? *each : guess), more = all > charged ? all - charged : 0;
    note(SHARED, device, ACCOUNT_CONTEXT, more, 0);
    mark_peak(SHARED, device);
    if (fit)
        header->device[index].others_mib =
            (uint32_t)((others > more ? others - more : 0) >> MIB_SHIFT);
    return fit;
}

bool account_measured(int device, uint64_t in_use, uint64_t most, uint64_t *each) {
    if (device == ACCOUNT_BEYOND)
        return true;
    lock_take(&state.lock);
    enum footing footing = enter();
    bool fit = footing != SHARED || state.index[device] < 0 ||
               measured((unsigned)state.index[device], device, in_use, most, each);
    leave(footing);
    lock_free(&state.lock);
    return fit;
}

static unsigned own_slot(void) {
    return (unsigned)(state.slot - state.ledger.file->slot);
}

bool account_share(int device, uint64_t id, uint64_t bytes) {
    if (device == ACCOUNT_BEYOND)
        return false;
    lock_take(&state.lock);
    enum footing footing = enter();
    bool noted = footing == SHARED && state.index[device] >= 0;
    if (noted)
        noted = shared_make(state.ledger.file, own_slot(),
                            (struct ledger_shared){
                                .id = id, .bytes = bytes, .device = (uint32_t)state.index[device]});
    leave(footing);
    lock_free(&state.lock);
    return noted;
}

static_assert(ACCOUNT_SHARED == LEDGER_SHARED, "one table");

unsigned account_shared(uint64_t ids[ACCOUNT_SHARED]) {
    unsigned count = 0;
    lock_take(&state.lock);
    enum footing footing = enter();
    for (unsigned i = 0; i < LEDGER_SHARED && footing == SHARED; i++)
        if (state.ledger.file->header.shared[i].id)
            ids[count++] = state.ledger.file->header.shared[i].id;
    leave(footing);
    lock_free(&state.lock);
    return count;
}

bool account_join(uint64_t id, int *device, uint64_t *bytes) {
    lock_take(&state.lock);
    enum footing footing = enter();
    struct ledger_file *file = state.ledger.file;
    struct ledger_shared *shared = footing == SHARED ? shared_find(file, id) : NULL;
    bool joined = false;
    if (shared && shared->device < LEDGER_DEVICES) {
        *device = number_of(file->header.device[shared->device].uuid);
        *bytes = shared->bytes;
        list_devices(file);
        if (*device != ACCOUNT_BEYOND && shared_join(shared, own_slot(), &joined))
            note(footing, *device, ACCOUNT_MEMORY, *bytes, 0);
    }
    leave(footing);
    lock_free(&state.lock);
    return joined;
}

void account_let_go(int device, uint64_t id, uint64_t bytes, bool made) {
    if (device == ACCOUNT_BEYOND)
        return;
    lock_take(&state.lock);
    enum footing footing = enter();
    struct ledger_shared *shared = footing == SHARED ? shared_find(state.ledger.file, id) : NULL;
    bool paid = shared ? shared_leave(state.ledger.file, shared, own_slot()) : made;
    if (paid)
        note(footing, device, ACCOUNT_MEMORY, 0, bytes);
    leave(footing);
    lock_free(&state.lock);
}

uint64_t account_held(int device) {
    if (device == ACCOUNT_BEYOND)
        return UINT64_MAX;
    lock_take(&state.lock);
    enum footing footing = enter();
    if (footing == SHARED && os_milliseconds() >= state.next_reap) {
        /* So that what a view shows does not include the dead; not at every call of a busy program.
         */
        slots_reap(state.ledger.file, &state.self);
        state.next_reap = os_milliseconds() + CHECK_MILLISECONDS;
    }
    uint64_t bytes = held(footing, device);
    leave(footing);
    lock_free(&state.lock);
    return bytes;
}

void account_forget(void) {
    /* The slot and the figures are the parent's. What it holds stays as long as this process has
     * the driver's files, which are closed at exec and by programs that close all, as this is. */
    ledger_leave_open(&state.ledger);
    memset(&state, 0, sizeof state);
    state.ledger.descriptor = -1;
}
