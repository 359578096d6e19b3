/*
 * What keeps physical memory charged: its handles, its mappings, descriptors that were made of it,
 * and what it is bound to. It is given back when the last of them is gone, or passes to the next
 * process of the container that holds it (shared.c).
 *
 * A descriptor may be duplicated, sent through a socket or inherited, and nothing tells the one who
 * made it. So it gets a lock (an open file description's, fcntl) on one byte of its file, which all
 * its copies share and nobody else, and which the kernel drops with the last of them: the byte is
 * the memory's number, plus a few for further exports. Whoever imports it knows it by that lock.
 */
#include "keep.h"

#include "charge.h"
#include "os.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic(int) descriptors; /* that are out, as far as is known */
static _Atomic(int) bindings;    /* more or less: none where it is 0 */

/* Whether the charge for memory without a handle goes to a descriptor. */
static bool is_exported(uint64_t serial) {
    return descriptors && owned_pay_by_export(serial);
}

/* Nothing here keeps it any more. A multicast object has no memory, but may have some bound to it.
 */
static void give_back(const struct owned *memory) {
    if (memory->target)
        account_let_go(memory->device, memory->target, memory->bytes, !memory->owner);
    else
        charge_return(memory->device, memory->bytes);
    keep_target_gone(memory->serial);
}

/* A reference less is noted before the driver's call, for afterwards the handle's number may be
 * that of another thread's new memory. What the memory costs is given back after it. */
void keep_released(CUresult answer, uint64_t handle, const struct owned *memory) {
    if (answer != CUDA_SUCCESS)
        owned_raise(OWNED_HANDLE, handle);
    else if (owned_end(OWNED_HANDLE, handle, memory->serial) && !is_exported(memory->serial))
        give_back(memory);
}

static uint64_t inode_of(int descriptor) {
    struct stat status;
    return os_fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

/* Numbers of memory are beyond those of descriptors, and leave room for each one's exports. */
#define NUMBER  (UINT64_C(1) << 62)
#define EXPORTS 8u

static uint64_t new_number(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t seed = (uint64_t)now.tv_nsec << 34 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid();
    seed = (seed ^ owned_serial() << 44) * 0x9e3779b97f4a7c15u;
    return NUMBER | ((seed ^ seed >> 29) & (NUMBER - EXPORTS));
}

/* Whether somebody else than this description has one of these bytes locked. */
static bool is_locked(int file, uint64_t at, uint64_t bytes) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = (off_t)bytes};
    return fcntl(file, OS_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* The same file, opened for itself; -1: it cannot be. */
static int open_again(int descriptor) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Locks a byte by the descriptor; another one of the file, or -1: it cannot be told who has it. */
static int mark(int descriptor, uint64_t byte) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    if (fcntl(descriptor, OS_OFD_SETLK, &lock) != 0)
        return -1;
    int file = open_again(descriptor);
    if (file >= 0 && is_locked(file, byte, 1))
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

uint64_t keep_number_of(int descriptor) {
    uint64_t numbers[ACCOUNT_SHARED], found = 0;
    int kept_errno = errno;
    unsigned count = account_shared(numbers);
    int file = count ? open_again(descriptor) : -1;
    for (unsigned i = 0; i < count && file >= 0 && !found; i++)
        for (unsigned k = 0; k < EXPORTS && is_locked(file, numbers[i], EXPORTS); k++)
            if (is_locked(file, numbers[i] + k, 1) && !is_locked(descriptor, numbers[i] + k, 1))
                found = numbers[i];
    if (file >= 0)
        close(file);
    errno = kept_errno;
    return found;
}

void keep_imported(CUmemGenericAllocationHandle handle, uint64_t number) {
    struct owned memory = {.references = 1, .serial = owned_serial(), .target = number, .owner = 1};
    if (!owned_raise(OWNED_HANDLE, handle) && account_join(number, &memory.device, &memory.bytes))
        owned_put(OWNED_HANDLE, handle, memory);
}

static bool is_open(uint64_t key, const struct owned *export) {
    if (key < NUMBER || key >= 2 * NUMBER) /* and those that nobody can tell of */
        return inode_of((int)key - 1) == export->owner;
    /* A program may have closed all that it does not know. */
    return inode_of(export->file) != export->owner || is_locked(export->file, key, 1);
}

/* The descriptor is closed: what was charged for it alone is free, or charged for another one. */
static bool closed(uint64_t key) {
    struct owned export;
    if (!owned_take(OWNED_EXPORT, key, &export))
        return false;
    descriptors--;
    if (key >= NUMBER && key < 2 * NUMBER && inode_of(export.file) == export.owner)
        close(export.file);
    export.owner = 0; /* of this process's making, as far as that is still known */
    bool free = export.references && !is_exported(export.serial);
    if (free)
        give_back(&export);
    return free;
}

bool keep_look_for_closed(void) {
    struct owned export;
    uint64_t at = 0, key;
    bool any = false;
    while (descriptors && owned_next(OWNED_EXPORT, &at, &key, &export))
        if (!is_open(key, &export)) {
            any |= closed(key);
            at--; /* another entry may be there now */
        }
    return any;
}

struct keeper keep_begin(CUmemGenericAllocationHandle handle) {
    return (struct keeper){.handle = handle, .ours = owned_raise(OWNED_HANDLE, handle)};
}

/* By then the handle's number may be that of memory which was made after it was kept. */
void keep_drop(const struct owned *kept) {
    struct owned memory;
    if (owned_lower(OWNED_HANDLE, kept->owner, kept->serial, &memory))
        keep_released(CUDA_SUCCESS, kept->owner, &memory);
}

bool keep_end(const struct keeper *keeper, CUresult answer, enum owned_kind kind, uint64_t key,
              struct owned entry) {
    struct owned old;
    entry.owner = keeper->handle;
    entry.serial = owned_serial();
    if (answer != CUDA_SUCCESS) {
        if (keeper->ours)
            keep_drop(&entry);
        return false;
    }
    bool another = owned_replace(kind, key, entry, &old);
    if (another)
        keep_drop(&old);
    return !another;
}

void keep_forget(void) {
    descriptors = bindings = 0;
}

void keep_made(CUmemGenericAllocationHandle handle, int device, uint64_t bytes) {
    struct owned memory = {
        .bytes = bytes, .device = device, .references = 1, .serial = owned_serial()};
    struct owned old;
    if (owned_replace(OWNED_HANDLE, handle, memory, &old) && !is_exported(old.serial))
        give_back(&old);
}

/* Its number, a new one if others do not know it yet; 0: they cannot. */
static uint64_t share(CUmemGenericAllocationHandle handle, struct owned *memory) {
    if (!memory->target) {
        uint64_t number = new_number();
        if (account_share(memory->device, number, memory->bytes))
            owned_aim(OWNED_HANDLE, handle, memory->serial, number, memory->bytes);
        owned_look_up(OWNED_HANDLE, handle, memory);
    }
    return memory->target;
}

void keep_exported(const void *shareable, CUmemAllocationHandleType type,
                   CUmemGenericAllocationHandle handle) {
    struct owned memory;
    if (!owned_look_up(OWNED_HANDLE, handle, &memory))
        return;
    int descriptor = -1; /* of another type (a fabric handle): nobody can tell when it is let go */
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        memcpy(&descriptor, shareable, sizeof descriptor);
    struct owned export = {.bytes = memory.bytes,
                           .owner = descriptor < 0 ? 0 : inode_of(descriptor),
                           .device = memory.device,
                           .serial = memory.serial,
                           .file = -1},
                 other;
    uint64_t key = descriptor < 0 ? UINT64_MAX - owned_serial() : (uint64_t)descriptor + 1;
    export.target = descriptor < 0 ? memory.target : share(handle, &memory);
    for (unsigned k = 0; export.target && k < EXPORTS && export.file < 0; k++)
        if (!owned_look_up(OWNED_EXPORT, export.target + k, &other) &&
            (export.file = mark(descriptor, export.target + k)) >= 0)
            key = export.target + k;
    closed(key); /* an earlier one of that number */
    owned_put(OWNED_EXPORT, key, export);
    descriptors++;
}

/* The key of what is bound to a target on a device at an offset. */
static uint64_t place_of(uint64_t target, int device, uint64_t offset) {
    return (target ^ (uint64_t)device << 56) * 0x9e3779b97f4a7c15u + offset;
}

void keep_bound(const struct keeper *keeper, CUresult answer, const struct owned *entry,
                uint64_t offset) {
    uint64_t key = place_of(entry->target, entry->device, offset);
    if (keeper->ours)
        bindings += keep_end(keeper, answer, OWNED_BOUND, key, *entry);
}

void keep_unbound(uint64_t target, int device, uint64_t offset, uint64_t bytes, uint64_t before) {
    struct owned entry;
    uint64_t at = 0, key;
    while (bindings && owned_next(OWNED_BOUND, &at, &key, &entry)) {
        if (entry.target != target || (device != KEEP_EVERY_DEVICE && entry.device != device) ||
            key - place_of(target, entry.device, offset) >= bytes ||
            !owned_take_older(OWNED_BOUND, key, before, &entry))
            continue;
        at--; /* another entry may be there now */
        bindings--;
        keep_drop(&entry);
    }
}

void keep_target_gone(uint64_t serial) {
    keep_unbound(serial, KEEP_EVERY_DEVICE, 0, UINT64_MAX, UINT64_MAX);
}

bool keep_any_bound(void) {
    return bindings != 0;
}
