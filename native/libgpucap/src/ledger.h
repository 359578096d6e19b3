/*
 * The ledger: what the processes of one container hold of each device, in one file they all map.
 *
 * Invariant: the sum over the slots of (used_bytes + context_bytes) of a device, and its
 * `unslotted`, is what the container is charged for it. `total` repeats the first, so that nobody
 * has to read all slots, and is summed anew after whatever might have left it wrong; so a process
 * that dies at any step leaves nothing to repair but its own slot, which the next one reaps. Every
 * change is made under `mutex` (process-shared, robust), with two exceptions: the node agent writes
 * context_bytes and unslotted with pwrite and takes no lock, because it must never wait for a
 * tenant; and a process that cannot have the lock writes its own slot, and never takes more.
 *
 * Native byte order and no pointers. Sizes and offsets are part of the contract with the agent
 * (docs/adr/0016): `make offsets` prints them, a test compares them with the agent's constants, and
 * a change of any of them is a change of LEDGER_VERSION. A container keeps the library it started
 * with, whatever becomes of the agent: so what is new goes where earlier libraries leave noughts,
 * with a word that says that it is kept, and the version stays.
 */
#ifndef GPUCAP_LEDGER_H
#define GPUCAP_LEDGER_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_FILE       "ledger"  /* in the state folder */
#define LEDGER_MAGIC      "GPUCAPL" /* 7 letters and a NUL: 8 bytes */
#define LEDGER_VERSION    1u
#define LEDGER_DEVICES    16u
#define LEDGER_SLOTS      2048u
#define LEDGER_MUTEX_ROOM 64u /* pthread_mutex_t is 40 bytes on x86-64, 48 on aarch64 */

/* One device of the container. An entry is taken once and never moves: its index is the index into
 * every slot's `device`. 32 bytes. */
struct ledger_device {
    uint8_t
        uuid[16]; /*  0: the 16 bytes of cuDeviceGetUuid_v2; "GPU-…" in hexadecimal is the same */
    uint32_t in_use;     /* 16: 1 = the entry names a device; entries are taken from 0 up */
    uint32_t others_mib; /* 20: what of the device was in use beyond what the container was charged,
                          *     after its last context was made while nobody knew what one takes */
    uint32_t spare[2];   /* 24 */
};

/* What one process holds of one device. 16 bytes. */
struct ledger_held {
    uint64_t
        used_bytes; /* 0: its allocations, those that the driver has not yet answered included */
    uint64_t
        context_bytes; /* 8: contexts, modules, libraries: what NVML shows for the process above
                        *    used_bytes. The library writes an estimate at the process's first
                        *    context and 0 after its last; in between THE AGENT WRITES IT. */
};

/* What the container has had of one device since the ledger was made; nothing that anybody decides
 * by. 16 bytes. */
struct ledger_mark {
    uint64_t peak_bytes; /* 0: the most of (used_bytes + context_bytes) at once, over all slots */
    uint64_t refused;    /* 8: allocations that the library refused */
};

/* Memory that several processes of the container may hold: exported, or with an IPC handle. It is
 * in used_bytes of the first holder, and passes to the next when that lets go or is dead. 40 bytes.
 */
#define LEDGER_SHARED  64u
#define LEDGER_HOLDERS 10u
struct ledger_shared {
    uint64_t id;                     /*  0: 0 = free */
    uint64_t bytes;                  /*  8 */
    uint32_t device;                 /* 16: index of the device table */
    uint16_t holder[LEDGER_HOLDERS]; /* 20: slots, plus one; 0 = none and none after it */
};

/* One process. Free when pid is 0. Key: pid + start_time; a slot whose process is gone is free for
 * the taking, whatever it says. Its open file has a lock (F_OFD_SETLK) on the byte whose offset is
 * its slot's number: while that is held the slot counts, whatever its number seems to say. Forked
 * children have it as long as they have the driver's files, for which the driver keeps what the
 * process held, though it is dead (docs/adr/0076). 320 bytes. */
struct ledger_slot {
    uint32_t pid;        /*  0: in the container's PID namespace (last number of NSpid); 0 = free */
    uint32_t spare0;     /*  4 */
    uint64_t start_time; /*  8: field 22 of /proc/<pid>/stat, clock ticks since boot */
    uint64_t
        pid_namespace; /* 16: inode of /proc/<pid>/ns/pid: the number is one of this namespace */
    uint64_t spare1;   /* 24 */
    struct ledger_held device[LEDGER_DEVICES]; /* 32: 16 × 16 bytes, by index of the device table */
    uint16_t contexts[LEDGER_DEVICES]; /* 288: that context_bytes is for, with those that are being
                                        *     made; 0: not said */
};

/* The file begins with this; slot i is at header_bytes + i * slot_bytes. 4,096 bytes. */
struct ledger_header {
    char magic[8];         /*  0: LEDGER_MAGIC; written last when the file is made */
    uint32_t version;      /*  8: LEDGER_VERSION */
    uint32_t header_bytes; /* 12: 4096 */
    uint32_t slot_bytes;   /* 16: 320 */
    uint32_t slot_count;   /* 20: 2048 */
    uint32_t device_count; /* 24: 16, entries of the device table (in use or not) */
    uint32_t mutex_bytes;  /* 28: sizeof(pthread_mutex_t) of the process that made the file */
    uint32_t slots_seen;   /* 32: slots at or above this number are free */
    uint32_t spare0;       /* 36 */
    uint64_t
        reaped_until; /* 40: CLOCK_MONOTONIC µs; before it nobody looks thoroughly for the dead */
    uint64_t looked_until; /* 48: the same; before it nobody looks at every slot for the dead */
    uint64_t spare2;       /* 56 */
    union {                /* 64: 64 bytes */
        pthread_mutex_t mutex;
        uint8_t room[LEDGER_MUTEX_ROOM];
    };
    struct ledger_device device[LEDGER_DEVICES]; /* 128: 16 × 32 bytes */
    struct ledger_held total[LEDGER_DEVICES];    /* 640: sums over the slots, 16 × 16 bytes */
    uint64_t summed_until; /* 896: CLOCK_MONOTONIC ms; from then on they are summed anew */
    uint32_t unsummed;     /* 904: 1 = they are to be summed anew now */
    uint32_t keeps_marks;  /* 908: 1 = who made the file keeps the marks, from the beginning on */
    struct ledger_mark mark[LEDGER_DEVICES];    /* 912: 16 × 16 bytes */
    struct ledger_shared shared[LEDGER_SHARED]; /* 1168: 64 × 40 bytes */
    uint64_t unslotted[LEDGER_DEVICES]; /* 3728: bytes that the driver shows of processes of the
                                         * container without a slot: THE AGENT WRITES IT */
    uint64_t
        unslotted_until; /* 3856: CLOCK_MONOTONIC ms; from then on that is old: the agent again */
    uint8_t spare1[232]; /* 3864 */
};

struct ledger_file {
    struct ledger_header header;           /* 0 */
    struct ledger_slot slot[LEDGER_SLOTS]; /* 4096 */
};

static_assert(sizeof(struct ledger_device) == 32, "ledger layout");
static_assert(sizeof(struct ledger_held) == 16, "ledger layout");
static_assert(sizeof(struct ledger_slot) == 320, "ledger layout");
static_assert(offsetof(struct ledger_slot, start_time) == 8, "ledger layout");
static_assert(offsetof(struct ledger_slot, pid_namespace) == 16, "ledger layout");
static_assert(offsetof(struct ledger_slot, device) == 32, "ledger layout");
static_assert(offsetof(struct ledger_slot, contexts) == 288, "ledger layout");
static_assert(sizeof(struct ledger_header) == 4096, "ledger layout");
static_assert(offsetof(struct ledger_header, slots_seen) == 32, "ledger layout");
static_assert(offsetof(struct ledger_header, mutex) == 64, "ledger layout");
static_assert(offsetof(struct ledger_header, device) == 128, "ledger layout");
static_assert(offsetof(struct ledger_header, total) == 640, "ledger layout");
static_assert(offsetof(struct ledger_header, unsummed) == 904, "ledger layout");
static_assert(offsetof(struct ledger_header, keeps_marks) == 908, "ledger layout");
static_assert(offsetof(struct ledger_header, mark) == 912, "ledger layout");
static_assert(offsetof(struct ledger_header, shared) == 1168, "ledger layout");
static_assert(offsetof(struct ledger_header, unslotted) == 3728, "ledger layout");
static_assert(offsetof(struct ledger_header, unslotted_until) == 3856, "ledger layout");
static_assert(sizeof(struct ledger_shared) == 40, "ledger layout");
static_assert(sizeof(struct ledger_mark) == 16, "ledger layout");
static_assert(offsetof(struct ledger_file, slot) == 4096, "ledger layout");
static_assert(sizeof(struct ledger_file) == 659456, "ledger layout");

#endif
