#include "slots.h"

#include "fault.h"
#include "log.h"
#include "os.h"
#include "shared.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The agent writes context_bytes from another process without the lock: each field is one aligned
 * 64-bit word, read and written whole. */
static uint64_t load(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static unsigned seen(const struct ledger_file *file) {
    uint32_t count = file->header.slots_seen;
    return count < LEDGER_SLOTS ? count : LEDGER_SLOTS;
}

/* Reads state, number of threads and start time: fields 3, 20 and 22 of /proc/<pid>/stat. */
static bool read_stat(const char *path, char *state, uint64_t *threads, uint64_t *start_time) {
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *at = strrchr(text, ')'); /* the command before it may hold anything */
    if (!at || at[1] != ' ' || !at[2])
        return false;
    *state = at[2];
    at += 2;
    for (int field = 3; field < 22; at++) {
        if (!*at)
            return false;
        if (*at != ' ')
            continue;
        field++;
        uint64_t value = 0;
        for (const char *digit = at + 1; *digit >= '0' && *digit <= '9'; digit++)
            value = value * 10 + (uint64_t)(*digit - '0');
        if (field == 20)
            *threads = value;
        if (field == 22)
            *start_time = value;
    }
    return true;
}

struct process_key slots_self(void) {
    struct process_key self = {.pid = (uint32_t)getpid()};
    char state;
    uint64_t threads;
    struct stat space;
    read_stat("/proc/self/stat", &state, &threads, &self.start_time);
    if (os_stat("/proc/self/ns/pid", &space) == 0)
        self.pid_namespace = space.st_ino;
    return self;
}

static struct flock byte_lock(unsigned byte) {
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

static bool is_own(const struct ledger_slot *slot, const struct process_key *self) {
    return slot->pid == self->pid && slot->start_time == self->start_time &&
           slot->pid_namespace == self->pid_namespace;
}

/* Whether no process that can be seen here has the slot's number and start time. One that cannot be
 * looked at (another user's, /proc hidden) counts as seen. A number of another namespace means
 * nothing here: the container was restarted, or one of the two is in a sandbox within it. */
static bool is_unseen(const struct ledger_slot *slot, const struct process_key *self,
                      bool thoroughly) {
    if (slot->pid_namespace != self->pid_namespace)
        return true;
    if (kill((pid_t)slot->pid, 0) != 0 && errno == ESRCH)
        return true;
    char path[40], state;
    uint64_t threads = 0, start_time = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", slot->pid);
    if (!thoroughly || !read_stat(path, &state, &threads, &start_time))
        return false;
    /* A dead leader whose threads run on still holds its memory: it counts more than one thread. */
    return start_time != slot->start_time || ((state == 'Z' || state == 'X') && threads <= 1);
}

/* Whether somebody has the lock of a slot: its process, or forked children of it, for which the
 * driver keeps what that held. -1: there are no locks here. */
static int is_locked(const struct ledger_slot *slots, const struct ledger_slot *slot,
                     const struct process_key *self) {
    struct flock lock = byte_lock((unsigned)(slot - slots));
    if (fcntl(self->file, F_GETLK, &lock) != 0)
        return -1;
    return lock.l_type != F_UNLCK;
}

/* Numbers and start times deceive: /proc may be that of another PID namespace, and clocks those of
 * another time namespace. The lock does not: while somebody has it, the slot counts. */
static bool is_gone(const struct ledger_slot *slots, const struct ledger_slot *slot,
                    const struct process_key *self, bool thoroughly) {
    if (is_own(slot, self) || !is_unseen(slot, self, thoroughly))
        return false;
    int locked = is_locked(slots, slot, self);
    if (locked < 0)
        return slot->pid_namespace == self->pid_namespace; /* the number must do */
    if (locked && slot->pid_namespace == self->pid_namespace)
        log_once("ledger: what process %u held is charged though that is gone: a forked child has "
                 "its descriptors, for which the driver keeps it",
                 slot->pid);
    return !locked;
}

static void reap_one(struct ledger_file *file, unsigned number, const struct process_key *self,
                     bool thoroughly) {
    struct ledger_slot *slot = &file->slot[number];
    if (slot->pid && is_gone(file->slot, slot, self, thoroughly)) {
        FAULT(reap_slot);
        file->header.unsummed = 1;
        shared_slot_gone(file, number);
        __atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
        FAULT(reaped_slot);
    }
}

static void reap(struct ledger_file *file, const struct process_key *self, bool thoroughly) {
    for (unsigned i = 0; i < seen(file); i++)
        reap_one(file, i, self, thoroughly);
    unsigned end = seen(file);
    while (end && !file->slot[end - 1].pid)
        end--;
    file->header.slots_seen = end; /* so that nobody reads those of the dead for ever */
}

#define REAP_SOME 16u

/* Some slots, the next ones at the next call: all of them where there are no more. */
static void reap_some(struct ledger_file *file, const struct process_key *self) {
    static unsigned next;
    if (seen(file) <= REAP_SOME) {
        reap(file, self, false);
        return;
    }
    for (unsigned i = 0; i < REAP_SOME; i++)
        reap_one(file, next++ % seen(file), self, false);
}

#define REAP_PAUSE_SHARE 20u
#define REAP_PAUSE_MOST  10000000u /* microseconds; beyond that the word is nonsense */

static uint64_t microseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static bool is_due(uint64_t until, uint64_t now) {
    return now >= until || until > now + REAP_PAUSE_MOST;
}

void slots_reap_when_due(struct ledger_file *file, const struct process_key *self) {
    if (is_due(file->header.reaped_until, microseconds(CLOCK_MONOTONIC)))
        slots_reap(file, self);
}

void slots_reap(struct ledger_file *file, const struct process_key *self) {
    struct ledger_header *header = &file->header;
    uint64_t now = microseconds(CLOCK_MONOTONIC);
    bool thoroughly = is_due(header->reaped_until, now);
    if (!thoroughly && !is_due(header->looked_until, now)) {
        reap_some(file, self);
        return;
    }
    /* The processor's time, not the clock's: a thread that had to wait did not make work. */
    uint64_t before = microseconds(CLOCK_THREAD_CPUTIME_ID);
    reap(file, self, thoroughly);
    uint64_t pause = (microseconds(CLOCK_THREAD_CPUTIME_ID) - before) * REAP_PAUSE_SHARE;
    uint64_t until = now + (pause < REAP_PAUSE_MOST ? pause : REAP_PAUSE_MOST);
    if (thoroughly)
        header->reaped_until = until;
    else
        header->looked_until = until;
}

/* The slot that this process had as another program. What that held may stay for its children: then
 * the slot gets a key that no process has. */
static struct ledger_slot *own(struct ledger_file *file, const struct process_key *self) {
    for (unsigned i = 0; i < seen(file); i++) {
        struct ledger_slot *slot = &file->slot[i];
        if (!is_own(slot, self))
            continue;
        if (is_locked(file->slot, slot, self) <= 0)
            return slot;
        slot->start_time = slot->pid_namespace = 0;
    }
    return NULL;
}

static struct ledger_slot *first_free(struct ledger_file *file) {
    unsigned i = 0, end = seen(file);
    while (i < end && file->slot[i].pid)
        i++;
    if (i == LEDGER_SLOTS)
        return NULL;
    if (i == end)
        file->header.slots_seen = i + 1;
    return &file->slot[i];
}

struct ledger_slot *slots_claim(struct ledger_file *file, const struct process_key *self) {
    struct ledger_slot *slot = own(file, self);
    if (!slot) {
        reap(file, self, false);
        slot = first_free(file);
    }
    if (!slot) {
        slots_reap(file, self);
        slot = first_free(file);
    }
    if (!slot)
        return NULL;
    FAULT(claim_empty);
    file->header.unsummed = 1;
    shared_slot_gone(file, (unsigned)(slot - file->slot));
    slot->pid = 0;
    for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
        store(&slot->device[i].used_bytes, 0);
        store(&slot->device[i].context_bytes, 0);
        slot->contexts[i] = 0;
    }
    slot->start_time = self->start_time;
    slot->pid_namespace = self->pid_namespace;
    FAULT(claim_filled);
    __atomic_store_n(&slot->pid, self->pid, __ATOMIC_RELEASE);
    slots_lock(file, slot, self);
    FAULT(claimed);
    return slot;
}

void slots_lock(struct ledger_file *file, struct ledger_slot *slot,
                const struct process_key *self) {
    struct flock lock = byte_lock((unsigned)(slot - file->slot));
    if (fcntl(self->file, OS_OFD_SETLK, &lock) != 0)
        fcntl(self->file, F_SETLK, &lock); /* where a file system has no locks, the pid must do */
}

bool slots_turn(const struct process_key *self, unsigned device, bool take) {
    struct flock lock = byte_lock(LEDGER_SLOTS + device);
    lock.l_type = take ? F_WRLCK : F_UNLCK;
    int kept_errno = errno;
    bool done = fcntl(self->file, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
    errno = kept_errno;
    return done; /* where a file system has no locks, nobody waits */
}

static uint64_t plus(uint64_t a, uint64_t b) {
    return a + b < a ? UINT64_MAX : a + b;
}

static uint64_t of_both(const struct ledger_held *held) {
    return plus(load(&held->used_bytes), load(&held->context_bytes));
}

#define UNSLOTTED_MOST 600000u /* ms ahead: more is another clock, or nonsense */

/* What the agent saw of processes that have no slot, as long as it says so every few seconds. */
static uint64_t unslotted(const struct ledger_file *file, unsigned device) {
    uint64_t bytes = load(&file->header.unslotted[device]);
    if (!bytes)
        return 0;
    uint64_t now = os_milliseconds(), until = load(&file->header.unslotted_until);
    return now < until && until - now < UNSLOTTED_MOST ? bytes : 0;
}

void slots_now_slotted(struct ledger_file *file, unsigned device, const struct ledger_held *held) {
    uint64_t *word = &file->header.unslotted[device], bytes = load(word), now = of_both(held);
    store(word, bytes > now ? bytes - now : 0);
}

uint64_t slots_sum_unlocked(const struct ledger_file *file, unsigned device) {
    uint64_t sum = unslotted(file, device);
    for (unsigned i = 0; i < seen(file); i++)
        if (file->slot[i].pid)
            sum = plus(sum, of_both(&file->slot[i].device[device]));
    return sum;
}

uint64_t slots_least_context(const struct ledger_file *file, unsigned device) {
    uint64_t least = 0;
    for (unsigned i = 0; i < seen(file); i++) {
        const struct ledger_slot *slot = &file->slot[i];
        uint64_t bytes = slot->pid ? load(&slot->device[device].context_bytes) : 0;
        bytes /= slot->contexts[device] ? slot->contexts[device] : 1;
        if (bytes && (!least || bytes < least))
            least = bytes;
    }
    return least;
}

#define SUMMED_MILLISECONDS 10u

/* Reads every slot: for the agent's words, and after whatever may have left the sums wrong. */
static void sum_anew(struct ledger_file *file, uint64_t now) {
    struct ledger_header *header = &file->header;
    /* First: who changes a slot without the lock sets it again. */
    __atomic_store_n(&header->unsummed, 0, __ATOMIC_SEQ_CST);
    for (unsigned device = 0; device < LEDGER_DEVICES && header->device[device].in_use; device++) {
        struct ledger_held sum = {0};
        for (unsigned i = 0; i < seen(file); i++) {
            const struct ledger_held *held = &file->slot[i].device[device];
            if (!file->slot[i].pid)
                continue;
            sum.used_bytes = plus(sum.used_bytes, load(&held->used_bytes));
            sum.context_bytes = plus(sum.context_bytes, load(&held->context_bytes));
        }
        header->total[device] = sum;
    }
    header->summed_until = now + SUMMED_MILLISECONDS;
}

uint64_t slots_sum(struct ledger_file *file, unsigned device) {
    uint64_t now = os_milliseconds(), until = file->header.summed_until;
    if (__atomic_load_n(&file->header.unsummed, __ATOMIC_ACQUIRE) || now >= until ||
        until > now + SUMMED_MILLISECONDS)
        sum_anew(file, now);
    return plus(of_both(&file->header.total[device]), unslotted(file, device));
}

/* As last summed; anew where that is known to be wrong. */
static uint64_t present(struct ledger_file *file, unsigned device) {
    return __atomic_load_n(&file->header.unsummed, __ATOMIC_ACQUIRE)
               ? slots_sum(file, device)
               : plus(of_both(&file->header.total[device]), unslotted(file, device));
}

bool slots_is_peak(struct ledger_file *file, unsigned device) {
    return present(file, device) > file->header.mark[device].peak_bytes;
}

void slots_mark_peak(struct ledger_file *file, unsigned device) {
    uint64_t bytes = present(file, device), *peak = &file->header.mark[device].peak_bytes;
    if (bytes > *peak)
        store(peak, bytes);
}

void slots_mark_refused(struct ledger_file *file, unsigned device) {
    uint64_t *refused = &file->header.mark[device].refused;
    store(refused, *refused + 1);
}

void slots_change(struct ledger_file *file, struct ledger_slot *slot, unsigned device,
                  enum account what, uint64_t more, uint64_t less, bool locked) {
    struct ledger_held *both = &slot->device[device];
    uint64_t *held = what == ACCOUNT_MEMORY ? &both->used_bytes : &both->context_bytes;
    uint64_t before = load(held), sum = plus(before, more), after = sum > less ? sum - less : 0;
    store(held, after);
    FAULT(changed_slot);
    if (locked && what == ACCOUNT_MEMORY)
        file->header.total[device].used_bytes += after - before;
    else /* or the agent may have written there since they were summed */
        __atomic_store_n(&file->header.unsummed, 1, __ATOMIC_RELEASE);
}

int slots_device(struct ledger_file *file, const uint8_t uuid[16]) {
    for (int i = 0; i < (int)LEDGER_DEVICES; i++) {
        struct ledger_device *device = &file->header.device[i];
        if (!device->in_use) {
            memcpy(device->uuid, uuid, sizeof device->uuid);
            FAULT(device_named);
            __atomic_store_n(&device->in_use, 1, __ATOMIC_RELEASE);
            return i;
        }
        if (memcmp(device->uuid, uuid, sizeof device->uuid) == 0)
            return i;
    }
    return -1;
}
