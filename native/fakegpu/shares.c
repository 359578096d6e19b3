/*
 * Memory that several processes hold. It is counted for one of them at a time: its maker as long as
 * that holds it, then the one that has joined first. It goes back when nobody holds it.
 *
 * Memory that may be exported as a descriptor has a file of its own in the folder. Every descriptor
 * that the driver gives out, and every one that it keeps, is opened for itself and has a shared
 * lock on that file, which the kernel drops when the last copy of it is closed, wherever that is:
 * so the file is locked as long as anybody can still import the memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

static void path_of(uint64_t number, char path[4096]) {
    snprintf(path, 4096, "%s/memory-%llu", fg_folder(), (unsigned long long)number);
}

static int open_locked(uint64_t number, int flags) {
    char path[4096];
    path_of(number, path);
    int file = open(path, O_RDWR | flags, 0666);
    if (file >= 0 && flock(file, LOCK_SH)) {
        close(file);
        file = -1;
    }
    return file;
}

/* Whether a descriptor of it is open anywhere. */
static bool is_open(const FgShare *share) {
    char path[4096];
    path_of(share->number, path);
    int file = share->file ? open(path, O_RDWR | O_CLOEXEC) : -1;
    bool locked = file >= 0 && flock(file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (file >= 0) {
        close(file);
    }
    return locked;
}

/* Counts it for its payer, or takes it off. */
static void count(FgShared *shared, const FgShare *share, bool on) {
    FgDevice *device = &shared->device[share->device];
    uint64_t bytes = on ? share->bytes : -share->bytes;
    bool beside = share->beside;
    if (share->payer >= 0) {
        shared->slot[share->payer].bytes[share->device][share->kind] += bytes;
        beside = shared->slot[share->payer].beside;
    }
    device->used += bytes;
    device->beside += beside ? bytes : 0;
}

static void end(FgShare *share) {
    char path[4096];
    path_of(share->number, path);
    if (share->file) {
        unlink(path);
    }
    share->number = 0;
}

/* Nobody counts it at the moment: the next one does. false: it is gone. */
static bool hand_on(FgShared *shared, FgShare *share, int last) {
    int next = 0;
    while (next < FG_SLOTS && !share->holders[next]) {
        next++;
    }
    if (next == FG_SLOTS && !is_open(share)) {
        end(share);
        return false;
    }
    share->payer = next < FG_SLOTS ? next : last;
    count(shared, share, true);
    return true;
}

FgShare *fg_share_new(FgState *state, int device, FgKind kind, uint64_t bytes, int *file) {
    FgShared *shared = state->shared;
    FgShare *share = shared->share;
    while (share < shared->share + FG_SHARES && share->number) {
        share++;
    }
    if (share == shared->share + FG_SHARES) {
        return NULL;
    }
    uint64_t number = ++shared->last_share;
    struct stat status = {0};
    if (file) {
        *file = open_locked(number, O_CREAT | O_EXCL | O_CLOEXEC);
        if (*file < 0 || fchmod(*file, 0666) || ftruncate(*file, (off_t)bytes) ||
            fstat(*file, &status)) {
            return NULL;
        }
    }
    *share = (FgShare){.number = number,
                       .bytes = bytes,
                       .file = status.st_ino,
                       .device = (uint32_t)device,
                       .kind = kind,
                       .payer = state->slot,
                       .beside = shared->slot[state->slot].beside};
    share->holders[state->slot] = 1;
    uint32_t place = (uint32_t)(share - shared->share);
    shared->high_share = place < shared->high_share ? shared->high_share : place + 1;
    return share;
}

FgShare *fg_share_find(FgState *state, uint64_t number) {
    FgShared *shared = state->shared;
    for (uint32_t s = 0; number && s < shared->high_share; s++) {
        if (shared->share[s].number == number) {
            return &shared->share[s];
        }
    }
    return NULL;
}

FgShare *fg_share_of_file(FgState *state, int file) {
    FgShared *shared = state->shared;
    struct stat status;
    if (fstat(file, &status)) {
        return NULL;
    }
    for (uint32_t s = 0; s < shared->high_share; s++) {
        FgShare *share = &shared->share[s];
        if (share->number && share->file && share->file == status.st_ino) {
            return share;
        }
    }
    return NULL;
}

int fg_share_open(const FgShare *share, bool given_out) {
    return open_locked(share->number, given_out ? 0 : O_CLOEXEC);
}

void fg_share_join(FgState *state, FgShare *share) {
    share->holders[state->slot]++;
    if (share->payer < 0 || !share->holders[share->payer]) {
        count(state->shared, share, false);
        share->payer = state->slot;
        count(state->shared, share, true);
    }
}

bool fg_share_leave(FgState *state, FgShare *share, bool given_back) {
    if (--share->holders[state->slot] || share->payer != state->slot) {
        return false;
    }
    if (!given_back) {
        count(state->shared, share, false);
    }
    return hand_on(state->shared, share, state->slot) && share->payer == state->slot;
}

bool fg_shares_look(FgState *state) {
    FgShared *shared = state->shared;
    bool any = false;
    for (uint32_t s = 0; s < shared->high_share; s++) {
        FgShare *share = &shared->share[s];
        if (!share->number || share->payer < 0 || share->holders[share->payer]) {
            if (share->number && share->payer < 0 && !is_open(share)) {
                count(shared, share, false);
                end(share);
            }
            continue;
        }
        if (!is_open(share)) {
            count(shared, share, false);
            end(share);
        } else {
            any |= share->payer == state->slot;
        }
    }
    return any;
}

void fg_shares_reap(FgState *state, int slot) {
    FgShared *shared = state->shared;
    for (uint32_t s = 0; s < shared->high_share; s++) {
        FgShare *share = &shared->share[s];
        share->holders[slot] = 0;
        if (share->number && share->payer == slot) {
            share->payer = -1;
            hand_on(shared, share, -1);
        }
    }
}
