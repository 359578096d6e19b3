#include "owned.h"

#include "lock.h"
#include "log.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_ROOM 1024u /* entries; a power of two */

/* An open hash table, linear probing, at most half full. In memory of its own: the program's malloc
 * may be the one that is calling. */
struct entry {
    uint64_t key;
    uint32_t kind; /* 0: free */
    struct owned owned;
};

static struct {
    struct lock lock;
    struct entry *entries; /* NULL: none yet */
    uint64_t room, count;
} table;
static struct entry first[FIRST_ROOM]; /* enough for most programs */

static uint64_t home(enum owned_kind kind, uint64_t key) {
    uint64_t hash = (key ^ (uint64_t)kind << 56) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    return (hash >> 32 ^ hash) & (table.room - 1);
}

/* Where the entry is, or the free place where it would be. */
static struct entry *find(enum owned_kind kind, uint64_t key) {
    uint64_t at = home(kind, key);
    while (table.entries[at].kind &&
           (table.entries[at].key != key || table.entries[at].kind != kind))
        at = (at + 1) & (table.room - 1);
    return &table.entries[at];
}

static bool make_room(void) {
    if (table.count * 2 < table.room)
        return true;
    if (!table.entries) {
        memset(first, 0, sizeof first);
        table.entries = first;
        table.room = FIRST_ROOM;
        return true;
    }
    uint64_t old_room = table.room, room = old_room * 2;
    struct entry *old = table.entries;
    struct entry *fresh = mmap(NULL, room * sizeof *fresh, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return table.count + 1 < old_room;
    table.entries = fresh;
    table.room = room;
    for (uint64_t i = 0; i < old_room; i++)
        if (old[i].kind)
            *find(old[i].kind, old[i].key) = old[i];
    if (old != first)
        munmap(old, old_room * sizeof *old);
    return true;
}

/* Removes an entry and moves up those that were put behind it because its place was taken. */
static void drop(struct entry *entry) {
    uint64_t hole = (uint64_t)(entry - table.entries), at = hole;
    for (;;) {
        at = (at + 1) & (table.room - 1);
        struct entry *next = &table.entries[at];
        if (!next->kind)
            break;
        uint64_t wanted = home(next->kind, next->key);
        if (((at - wanted) & (table.room - 1)) >= ((at - hole) & (table.room - 1))) {
            table.entries[hole] = *next;
            hole = at;
        }
    }
    table.entries[hole].kind = 0;
    table.count--;
}

static struct entry *known(enum owned_kind kind, uint64_t key) {
    struct entry *entry = table.entries ? find(kind, key) : NULL;
    return entry && entry->kind ? entry : NULL;
}

uint64_t owned_serial(void) {
    static _Atomic(uint64_t) last;
    return ++last;
}

bool owned_replace(enum owned_kind kind, uint64_t key, struct owned owned, struct owned *old) {
    bool there = false;
    if (!owned.serial)
        owned.serial = owned_serial();
    lock_take(&table.lock);
    if (make_room()) {
        struct entry *entry = find(kind, key);
        there = entry->kind != 0;
        if (there)
            *old = entry->owned;
        table.count += !there;
        *entry = (struct entry){key, kind, owned};
    } else {
        log_once("no memory to note an allocation: it is charged until the process ends");
    }
    lock_free(&table.lock);
    return there;
}

void owned_put(enum owned_kind kind, uint64_t key, struct owned owned) {
    struct owned old;
    owned_replace(kind, key, owned, &old);
}

bool owned_take(enum owned_kind kind, uint64_t key, struct owned *out) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    if (entry) {
        *out = entry->owned;
        drop(entry);
    }
    lock_free(&table.lock);
    return entry != NULL;
}

bool owned_look_up(enum owned_kind kind, uint64_t key, struct owned *out) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    if (entry)
        *out = entry->owned;
    lock_free(&table.lock);
    return entry != NULL;
}

bool owned_aim(enum owned_kind kind, uint64_t key, uint64_t serial, uint64_t target,
               uint64_t bytes) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    bool aimed = entry && entry->owned.serial == serial && !entry->owned.target;
    if (aimed) {
        entry->owned.target = target;
        entry->owned.bytes = bytes;
    }
    lock_free(&table.lock);
    return aimed;
}

bool owned_take_older(enum owned_kind kind, uint64_t key, uint64_t serial, struct owned *out) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    bool older = entry && entry->owned.serial < serial;
    if (older) {
        *out = entry->owned;
        drop(entry);
    }
    lock_free(&table.lock);
    return older;
}

bool owned_raise(enum owned_kind kind, uint64_t key) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    if (entry)
        entry->owned.references++;
    lock_free(&table.lock);
    return entry != NULL;
}

bool owned_lower(enum owned_kind kind, uint64_t key, uint64_t serial, struct owned *out) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    bool lower = entry && entry->owned.references && entry->owned.serial < serial;
    if (lower) {
        entry->owned.references--;
        *out = entry->owned;
    }
    lock_free(&table.lock);
    return lower;
}

bool owned_end(enum owned_kind kind, uint64_t key, uint64_t serial) {
    lock_take(&table.lock);
    struct entry *entry = known(kind, key);
    bool end = entry && entry->owned.serial == serial && !entry->owned.references;
    if (end)
        drop(entry);
    lock_free(&table.lock);
    return end;
}

bool owned_pay_by_export(uint64_t serial) {
    struct owned *found = NULL;
    lock_take(&table.lock);
    for (uint64_t i = 0; i < table.room && !found; i++)
        if (table.entries[i].kind == OWNED_EXPORT && table.entries[i].owned.serial == serial)
            found = &table.entries[i].owned;
    if (found)
        found->references = 1;
    lock_free(&table.lock);
    return found != NULL;
}

bool owned_next(enum owned_kind kind, uint64_t *at, uint64_t *key, struct owned *out) {
    bool found = false;
    lock_take(&table.lock);
    while (*at < table.room && !found) {
        const struct entry *entry = &table.entries[(*at)++];
        found = entry->kind == kind;
        if (found) {
            *key = entry->key;
            *out = entry->owned;
        }
    }
    lock_free(&table.lock);
    return found;
}

void owned_take_all_of(enum owned_kind kind, uint64_t owner, uint64_t serial, uint64_t limit,
                       uint64_t *below, uint64_t *others) {
    *below = *others = 0;
    lock_take(&table.lock);
    for (uint64_t i = 0; i < table.room;) {
        struct entry *entry = &table.entries[i];
        const struct owned *owned = &entry->owned;
        if (entry->kind == kind && owned->owner == owner && owned->serial < serial) {
            *(owned->bytes < limit ? below : others) += owned->bytes;
            drop(entry); /* which may put another one here */
        } else {
            i++;
        }
    }
    lock_free(&table.lock);
}

uint64_t owned_count(enum owned_kind kind, int device) {
    uint64_t count = 0;
    lock_take(&table.lock);
    for (uint64_t i = 0; i < table.room; i++)
        count += table.entries[i].kind == kind && table.entries[i].owned.device == device;
    lock_free(&table.lock);
    return count;
}

/* A number that no context has. */
static void hide_context(struct entry *entry) {
    struct owned context = entry->owned;
    context.target = 1;
    drop(entry);
    uint64_t key = UINT64_MAX - context.serial;
    *find(OWNED_CONTEXT, key) = (struct entry){key, OWNED_CONTEXT, context};
    table.count++;
}

void owned_driver_closed(void) {
    lock_take(&table.lock);
    for (uint64_t i = 0; i < table.room;) {
        struct entry *entry = &table.entries[i];
        if (!entry->kind || entry->kind == OWNED_EXPORT ||
            (entry->kind == OWNED_CONTEXT && entry->owned.target))
            i++;
        else if (entry->kind == OWNED_CONTEXT)
            hide_context(entry); /* another one may be here now */
        else
            drop(entry);
    }
    lock_free(&table.lock);
}

void owned_forget(void) {
    /* Where the parent's table is mapped it stays, unused: it may be half moved. */
    memset(&table, 0, sizeof table);
}
