/*
 * What keeps physical memory charged: its handles, its mappings, descriptors that were made of it,
 * and what it is bound to. It is given back when the last of them is gone.
 */
#include "keep.h"

#include "charge.h"
#include "os.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic(int) descriptors; /* that are out, as far as is known */
static _Atomic(int) bindings;    /* more or less: none where it is 0 */

/* Whether the charge for memory without a handle goes to a descriptor. */
static bool is_exported(uint64_t serial) {
    return descriptors && owned_pay_by_export(serial);
}

/* Nothing keeps it any more. A multicast object has no memory, but may have some bound to it. */
static void give_back(const struct owned *memory) {
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

/* The descriptor is closed: what was charged for it alone is free, or charged for another one. */
static bool closed(uint64_t key) {
    struct owned export;
    if (!owned_take(OWNED_EXPORT, key, &export))
        return false;
    descriptors--;
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
        if (inode_of((int)key - 1) != export.owner)
            any |= closed(key);
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

void keep_exported(const void *shareable, CUmemAllocationHandleType type,
                   const struct owned *memory) {
    int descriptor = -1; /* of another type (a fabric handle): nobody can tell when it is let go */
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        memcpy(&descriptor, shareable, sizeof descriptor);
    uint64_t key = descriptor < 0 ? UINT64_MAX - owned_serial() : (uint64_t)descriptor + 1;
    closed(key); /* an earlier one of that number */
    struct owned export = {.bytes = memory->bytes,
                           .owner = descriptor < 0 ? 0 : inode_of(descriptor),
                           .device = memory->device,
                           .serial = memory->serial};
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
