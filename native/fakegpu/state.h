/*
 * The memory of the pretended devices, shared by every process that uses them: one mapped file
 * under a robust mutex, with a slot per process. Invariant, whenever the mutex is free: a device's
 * `used` is the sum of the slots' bytes on it.
 *
 * A process is alive while the kernel holds its lock on byte `slot` of the file `lock`; the kernel
 * frees that at any death, and tells a reader the holder's pid in the reader's own namespace. What
 * a dead process held stays in its slot while a forked child has its descriptors, as the real
 * driver's files keep it: a lock on byte `slot` of the file `kept` is its open file's, which goes
 * to a child.
 */
#ifndef FAKEGPU_STATE_H
#define FAKEGPU_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum {
    FG_DEVICES = 20,
    FG_SLOTS = 2048,
    FG_XIDS = 64,
    FG_LIMITS = 256,
    FG_ANCESTORS = 12,
    FG_STEPS = 256,     /* of a device's schedule */
    FG_BUSY_STEPS = 16, /* of a process's */
    FG_SHARES = 512,
};
#define FG_MIB (UINT64_C(1) << 20)

typedef enum {
    FG_CONTEXT,
    FG_MODULE,
    FG_SYNC,
    FG_MANAGED,
    FG_POOL,
    FG_VMM,
    FG_ARRAY,
    FG_GRAPH,
    FG_KINDS
} FgKind;

/* One line `device` of the configuration. */
typedef struct {
    char uuid[64];
    char model[96];
    uint64_t total, reserved; /* bytes */
    int index, major, minor;
} FgDeviceConfig;

typedef struct {
    char driver[32];
    int cuda; /* 12080 = CUDA 12.8 */
    int count;
    FgDeviceConfig devices[FG_DEVICES];
    uint64_t granularity, pool_granularity, context, module; /* bytes */
    uint32_t pool_delay;    /* microseconds before an allocation from a pool */
    uint32_t context_delay; /* and before a context is made */
    bool memory_limits, na_used, na_busy;
} FgConfig;

/* From a second of a schedule on, a field of a device has this value (load.c has the table). */
typedef struct {
    uint32_t at_ms, field;
    uint64_t value;
} FgStep;

/* A schedule that a device plays, from `start` on. */
typedef struct {
    uint64_t start;           /* microseconds of CLOCK_MONOTONIC */
    uint32_t count, next;     /* steps in all, and the first that is still to come */
    uint32_t loop_ms, unused; /* then it begins anew; 0: the last values stay */
    FgStep step[FG_STEPS];
} FgPlay;

/* What a device has done so far, for whoever asks for the mean between two moments. */
typedef struct {
    uint64_t until; /* microseconds of CLOCK_MONOTONIC; 0: never looked at */
    uint64_t tensor, memory, received, sent; /* per cent or KiB/s, times microseconds */
} FgDone;

/* A device as all processes see it; everything below `used` is set by fakegpuctl. */
typedef struct {
    char uuid[64];
    uint64_t total, reserved, used; /* bytes */
    uint32_t lost, next_error, recovery_action, gpu_percent, memory_percent, temperature,
        milliwatts;
    uint32_t tensor_percent, encoder_percent, decoder_percent, sm_mhz, memory_mhz;
    uint32_t received_kib, sent_kib; /* over PCIe, a second */
    uint64_t throttle;               /* bits of nvmlClocksEventReasons */
    FgDone done;
    FgPlay play;
    uint64_t ecc_corrected, ecc_uncorrected;
    uint32_t retired_pages, remapped_rows, remap_pending, remap_failed;
    uint64_t xid_count; /* ever; the last FG_XIDS are kept */
    uint64_t xids[FG_XIDS];
    uint64_t beside; /* of `used`: what processes with FAKEGPU_BESIDE hold */
    uint64_t peak;   /* the most that the others ever held */
} FgDevice;

typedef struct {
    uint32_t used;
    int32_t pid; /* in the process's own namespace */
    uint64_t pid_namespace, start_time;
    uint64_t image; /* of the program: another one after exec, which lets go of everything */
    uint64_t cgroups[FG_ANCESTORS]; /* inodes: its cgroup, then its ancestors; 0 ends */
    uint32_t beside, busy_count;
    uint64_t busy_start; /* microseconds of CLOCK_MONOTONIC */
    struct {
        uint32_t ms, percent; /* how busy, for how long; the last one is followed by the first */
    } busy[FG_BUSY_STEPS];
    uint64_t bytes[FG_DEVICES][FG_KINDS];
} FgSlot;

/* A limit that nvmlDeviceSetMemoryLimits_v1 set. */
typedef struct {
    uint64_t cgroup; /* inode; 0: free */
    uint32_t device, padding;
    uint64_t soft, hard;
    char path[256];
} FgLimit;

/* Memory that more than one process may hold (shares.c). */
typedef struct {
    uint64_t number; /* 0: free */
    uint64_t bytes;
    uint64_t file; /* the inode of its file; 0: it cannot be exported as a descriptor */
    uint32_t device, kind, beside;
    int32_t payer;              /* the slot that it is counted in; -1: no process's figure has it */
    uint16_t holders[FG_SLOTS]; /* how often each holds it */
} FgShare;

typedef struct {
    uint64_t magic;
    pthread_mutex_t mutex;
    uint32_t devices, high_slot; /* slots from high_slot on were never used */
    FgDevice device[FG_DEVICES];
    FgLimit limit[FG_LIMITS];
    FgSlot slot[FG_SLOTS];
    uint64_t last_share;
    uint32_t high_share, unused;
    FgShare share[FG_SHARES];
} FgShared;

/* What one process holds of it. */
typedef struct {
    FgShared *shared;
    FgConfig config;
    int to_shared[FG_DEVICES]; /* configured device -> shared device */
    int lock_file, kept_file;
    int slot; /* -1: a reader */
} FgState;

/* Read the configuration and map the state; with `member`, take a slot. 0 or an errno. */
int fg_attach(FgState *state, bool member);

void fg_lock(FgState *state);
void fg_unlock(FgState *state);

/* The rest expects the lock to be held, and `device` to number a shared device. */

/* Take bytes for this process; false: the device, or the limit of its cgroup, has not that many. */
bool fg_charge(FgState *state, int device, FgKind kind, uint64_t bytes);
void fg_release(FgState *state, int device, FgKind kind, uint64_t bytes);

/* Forget what dead processes held that no child of theirs keeps. */
void fg_reap(FgState *state);

/* Memory that this process was charged for may be held by others from now on. With `file` it gets
 * one, open in this process. NULL: there are too many, or no file. */
FgShare *fg_share_new(FgState *state, int device, FgKind kind, uint64_t bytes, int *file);

/* By its number, or by a descriptor of its file; NULL: it is gone. */
FgShare *fg_share_find(FgState *state, uint64_t number);
FgShare *fg_share_of_file(FgState *state, int file);

/* Another descriptor of its file; one that is given out outlives an exec. */
int fg_share_open(const FgShare *share, bool given_out);

/* This process holds it once more, or once less; `given_back`: what it was charged for it is taken
 * off already. true: nobody holds it but by a descriptor, and it stays counted here. */
void fg_share_join(FgState *state, FgShare *share);
bool fg_share_leave(FgState *state, FgShare *share, bool given_back);

/* Give back what nobody holds any more, by a descriptor either; true: some stays counted here. */
bool fg_shares_look(FgState *state);

/* The process of a slot is dead. */
void fg_shares_reap(FgState *state, int slot);

/* The limit nearest to a process with these cgroups, or NULL; and what its members hold. */
FgLimit *fg_limit(FgState *state, int device, const uint64_t *cgroups);
uint64_t fg_limit_used(FgState *state, int device, uint64_t cgroup);

/* The cgroups of this process, as FgSlot has them. */
void fg_own_cgroups(uint64_t *cgroups);

/* The holder's pid in the reader's namespace; 0: it has none there; -1: dead. */
pid_t fg_holder(FgState *state, int slot);

uint64_t fg_slot_bytes(const FgSlot *slot, int device);
uint64_t fg_usable(const FgDevice *device);
const char *fg_folder(void);

static inline uint64_t fg_round_up(uint64_t bytes, uint64_t granule) {
    return (bytes + granule - 1) / granule * granule;
}

/* load.c. Applies what of the device's schedule is due, and adds up what it did. */
void fg_advance(FgDevice *device);

/* Sets a field by its name: what fakegpuctl's `set` takes, in the state's own units. */
bool fg_set(FgDevice *device, const char *name, uint64_t number);

/* One option with its value, as `fakegpuctl load` and a line of a schedule have them, for example
 * "--power" and "310" (watts); false: no such thing. `at_ms` into the schedule `play`; NULL: now.
 */
bool fg_option(FgDevice *device, FgPlay *play, uint32_t at_ms, const char *name, const char *value);

/* Reads a schedule; 0, or the number of the line that is wrong. */
int fg_read_schedule(FILE *file, FgPlay *play);

/* Begins to play it; what it counted before stays. */
void fg_begin(FgDevice *device, const FgPlay *play);

void fg_raise_xid(FgDevice *device, uint64_t code);

/* How busy the process of a slot is now, per cent; and what keeps the device busy: what was set of
 * it, or the sum over the processes that hold memory there, whichever is more, at most 100. */
uint32_t fg_busy(const FgSlot *slot);
uint32_t fg_device_busy(FgState *state, int device);

/* "70", or seconds with percentages: "60:70,30:0" is 70 for a minute, 0 for half of one, and so on.
 * false: it is neither, and the slot is as it was. */
bool fg_set_busy(FgSlot *slot, const char *text);

/* config.c: 0 or an errno. */
int fg_read_config(FgConfig *config);

/* visible.c: the configured devices that this process may see, in order; CUDA also obeys
 * CUDA_VISIBLE_DEVICES. Returns how many. */
int fg_visible(const FgConfig *config, bool cuda, int *visible);

#endif
