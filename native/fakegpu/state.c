/* The shared file: attaching, taking and giving back memory, and forgetting the dead. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t MAGIC = 0x36307570676b6166; /* fakgpu06 */

/* Containers run as various users, so files are everybody's. O_CREAT comes second because the
 * kernel refuses it on another user's file in some folders (fs.protected_regular). */
static int open_shared(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", fg_folder(), name);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file >= 0) {
            (void)!fchmod(file, 0666);
        }
    }
    return file;
}

static void format(FgShared *shared) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    shared->magic = MAGIC;
}

static int map_state(FgState *state) {
    int file = open_shared("state");
    if (file < 0) {
        return errno;
    }
    int error = 0;
    struct stat status;
    flock(file, LOCK_EX);
    if (fstat(file, &status) || (status.st_size == 0 && ftruncate(file, sizeof(FgShared)))) {
        error = errno;
    } else if (status.st_size != 0 && status.st_size != (off_t)sizeof(FgShared)) {
        error = EPROTO;
    }
    void *map = MAP_FAILED;
    if (!error) {
        map = mmap(NULL, sizeof(FgShared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        error = map == MAP_FAILED ? errno : 0;
    }
    if (!error) {
        state->shared = map;
        if (state->shared->magic == 0) {
            format(state->shared);
        }
        error = state->shared->magic == MAGIC ? 0 : EPROTO;
    }
    flock(file, LOCK_UN);
    close(file);
    return error;
}

static void recount(FgShared *shared) {
    for (uint32_t d = 0; d < shared->devices; d++) {
        FgDevice *device = &shared->device[d];
        device->used = device->beside = 0;
        for (uint32_t s = 0; s < shared->high_slot; s++) {
            uint64_t bytes = fg_slot_bytes(&shared->slot[s], (int)d);
            device->used += bytes;
            device->beside += shared->slot[s].beside ? bytes : 0;
        }
    }
    for (uint32_t s = 0; s < shared->high_share; s++) {
        const FgShare *share = &shared->share[s];
        if (share->number && share->payer < 0) {
            shared->device[share->device].used += share->bytes;
            shared->device[share->device].beside += share->beside ? share->bytes : 0;
        }
    }
}

void fg_lock(FgState *state) {
    if (pthread_mutex_lock(&state->shared->mutex) == EOWNERDEAD) {
        recount(state->shared);
        pthread_mutex_consistent(&state->shared->mutex);
    }
}

void fg_unlock(FgState *state) {
    pthread_mutex_unlock(&state->shared->mutex);
}

static uint64_t own_pid_namespace(void) {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

static uint64_t own_start_time(void) {
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file) {
        return 0;
    }
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    unsigned long long start = 0;
    char *after_name = strrchr(text, ')');
    if (after_name) {
        sscanf(after_name + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &start);
    }
    return start;
}

/* Random numbers that the kernel gives a program when it starts, the same until exec. */
static uint64_t own_image(void) {
    uint64_t image = 0;
    const void *bytes = (const void *)getauxval(AT_RANDOM);
    if (bytes) {
        memcpy(&image, bytes, sizeof image);
    }
    return image;
}

/* The lock does not stop its own holder, so a process knows itself by pid, namespace, start and
 * program. */
static bool is_own(const FgSlot *slot) {
    return slot->pid == getpid() && slot->pid_namespace == own_pid_namespace() &&
           slot->start_time == own_start_time() && slot->image == own_image();
}

static struct flock byte_lock(int slot) {
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
}

pid_t fg_holder(FgState *state, int slot) {
    struct flock lock = byte_lock(slot);
    if (slot == state->slot || is_own(&state->shared->slot[slot])) {
        return getpid();
    }
    if (fcntl(state->lock_file, F_GETLK, &lock) || lock.l_type == F_UNLCK) {
        return -1;
    }
    return lock.l_pid > 0 ? lock.l_pid : 0;
}

/* Whether somebody has the open file of who took the slot: itself, or a forked child. */
static bool is_kept(FgState *state, int slot) {
    struct flock lock = byte_lock(slot);
    return !fcntl(state->kept_file, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static void take_slot(FgState *state) {
    FgShared *shared = state->shared;
    for (int s = 0; s < FG_SLOTS; s++) {
        struct flock lock = byte_lock(s);
        if (shared->slot[s].used || fcntl(state->lock_file, F_SETLK, &lock)) {
            continue;
        }
        shared->slot[s] = (FgSlot){.used = 1,
                                   .pid = getpid(),
                                   .pid_namespace = own_pid_namespace(),
                                   .start_time = own_start_time(),
                                   .image = own_image(),
                                   .beside = getenv("FAKEGPU_BESIDE") != NULL};
        fg_own_cgroups(shared->slot[s].cgroups);
        const char *busy = getenv("FAKEGPU_BUSY");
        if (busy && !fg_set_busy(&shared->slot[s], busy)) {
            fprintf(stderr, "fakegpu: FAKEGPU_BUSY: neither a percentage nor a schedule\n");
        }
        if (shared->high_slot <= (uint32_t)s) {
            shared->high_slot = (uint32_t)s + 1;
        }
        lock = byte_lock(s);
        fcntl(state->kept_file, F_OFD_SETLK, &lock);
        state->slot = s;
        return;
    }
}

/* Devices keep their place in the shared file, so that a changed configuration moves nobody. */
static int find_device(FgShared *shared, const FgDeviceConfig *wanted) {
    uint32_t d = 0;
    while (d < shared->devices && strcmp(shared->device[d].uuid, wanted->uuid)) {
        d++;
    }
    if (d == FG_DEVICES) {
        return -1;
    }
    FgDevice *device = &shared->device[d];
    if (d == shared->devices) {
        *device =
            (FgDevice){.temperature = 40, .milliwatts = 60000, .sm_mhz = 1410, .memory_mhz = 1215};
        memcpy(device->uuid, wanted->uuid, sizeof device->uuid);
        shared->devices++;
    }
    device->total = wanted->total;
    device->reserved = wanted->reserved;
    return (int)d;
}

int fg_attach(FgState *state, bool member) {
    int error = fg_read_config(&state->config);
    state->slot = -1;
    if (!error && !state->shared) { /* after a fork it is there already */
        error = map_state(state);
        state->lock_file = state->kept_file = -1;
    }
    if (!error && state->lock_file < 0) {
        state->lock_file = open_shared("lock");
        state->kept_file = open_shared("kept");
        error = state->lock_file < 0 || state->kept_file < 0 ? errno : 0;
    }
    if (error) {
        return error;
    }
    fg_lock(state);
    for (int i = 0; i < state->config.count; i++) {
        state->to_shared[i] = find_device(state->shared, &state->config.devices[i]);
        error = state->to_shared[i] < 0 ? E2BIG : error;
    }
    if (member && !error) {
        fg_reap(state); /* what this process held before exec, too */
        take_slot(state);
        if (state->slot < 0) {
            fg_reap(state);
            take_slot(state);
        }
        error = state->slot < 0 ? EAGAIN : 0;
    }
    fg_unlock(state);
    return error;
}

uint64_t fg_usable(const FgDevice *device) {
    return device->total - device->reserved;
}

uint64_t fg_slot_bytes(const FgSlot *slot, int device) {
    uint64_t sum = 0;
    for (int kind = 0; slot->used && kind < FG_KINDS; kind++) {
        sum += slot->bytes[device][kind];
    }
    return sum;
}

void fg_reap(FgState *state) {
    FgShared *shared = state->shared;
    for (uint32_t s = 0; s < shared->high_slot; s++) {
        if (!shared->slot[s].used || fg_holder(state, (int)s) >= 0) {
            continue;
        }
        if (is_kept(state, (int)s)) {
            shared->slot[s].busy_count = 0; /* nobody works */
            continue;
        }
        shared->slot[s] = (FgSlot){0};
        fg_shares_reap(state, (int)s);
    }
    fg_shares_look(state);
    recount(shared);
}

static bool fits(FgState *state, int device, FgKind kind, uint64_t bytes) {
    FgDevice *shared = &state->shared->device[device];
    if (bytes > fg_usable(shared) || shared->used > fg_usable(shared) - bytes) {
        return false;
    }
    if (kind == FG_MANAGED) { /* counts as the machine's memory for its cgroup */
        return true;
    }
    FgLimit *limit = fg_limit(state, device, state->shared->slot[state->slot].cgroups);
    uint64_t used = limit ? fg_limit_used(state, device, limit->cgroup) : 0;
    return !limit || (bytes <= limit->hard && used <= limit->hard - bytes);
}

bool fg_charge(FgState *state, int device, FgKind kind, uint64_t bytes) {
    if (!fits(state, device, kind, bytes)) {
        fg_reap(state);
        if (!fits(state, device, kind, bytes)) {
            return false;
        }
    }
    FgDevice *shared = &state->shared->device[device];
    FgSlot *slot = &state->shared->slot[state->slot];
    shared->used += bytes;
    shared->beside += slot->beside ? bytes : 0;
    uint64_t others = shared->used - shared->beside;
    shared->peak = others > shared->peak ? others : shared->peak;
    slot->bytes[device][kind] += bytes;
    return true;
}

void fg_release(FgState *state, int device, FgKind kind, uint64_t bytes) {
    FgSlot *slot = &state->shared->slot[state->slot];
    state->shared->device[device].used -= bytes;
    state->shared->device[device].beside -= slot->beside ? bytes : 0;
    slot->bytes[device][kind] -= bytes;
}
