/*
 * Virtual memory management: physical memory made by cuMemCreate is charged until its last handle
 * is released, its last mapping removed and its last descriptor closed. The device is named in the
 * properties, so no context is needed. Imported handles are not known here and are not charged:
 * their maker pays.
 */
#include "vmm.h"

#include "bound.h"
#include "charge.h"
#include "os.h"

#include <stdatomic.h>
#include <string.h>

#define GRANULE (2u << 20) /* the least that is mapped */

static _Atomic(int) descriptors; /* that are out, as far as is known */

/* Whether the charge for memory without a handle goes to a descriptor. */
static bool exported(uint64_t serial) {
    return descriptors && owned_pay_by_export(serial);
}

/* Nothing keeps it any more. A multicast object has no memory, but may have some bound to it. */
static void give_back(const struct owned *memory) {
    charge_return(memory->device, memory->bytes);
    bound_target_gone(memory->serial);
}

/* A reference less is noted before the driver's call, for afterwards the handle's number may be
 * that of another thread's new memory. What the memory costs is given back after it. */
static void released(CUresult answer, uint64_t handle, const struct owned *memory) {
    if (answer != CUDA_SUCCESS)
        owned_raise(OWNED_HANDLE, handle);
    else if (owned_end(OWNED_HANDLE, handle, memory->serial) && !exported(memory->serial))
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
    bool free = export.references && !exported(export.serial);
    if (free)
        give_back(&export);
    return free;
}

bool vmm_look_for_closed(void) {
    struct owned export;
    uint64_t at = 0, key;
    bool any = false;
    while (descriptors && owned_next(OWNED_EXPORT, &at, &key, &export))
        if (inode_of((int)key - 1) != export.owner)
            any |= closed(key);
    return any;
}

struct vmm_keeper vmm_keep(CUmemGenericAllocationHandle handle) {
    return (struct vmm_keeper){.handle = handle, .ours = owned_raise(OWNED_HANDLE, handle)};
}

/* By then the handle's number may be that of memory which was made after it was kept. */
void vmm_let_go(const struct owned *kept) {
    struct owned memory;
    if (owned_lower(OWNED_HANDLE, kept->owner, kept->serial, &memory))
        released(CUDA_SUCCESS, kept->owner, &memory);
}

bool vmm_kept(const struct vmm_keeper *keeper, CUresult answer, enum owned_kind kind, uint64_t key,
              struct owned entry) {
    struct owned old;
    entry.owner = keeper->handle;
    entry.serial = owned_serial();
    if (answer != CUDA_SUCCESS) {
        if (keeper->ours)
            vmm_let_go(&entry);
        return false;
    }
    bool another = owned_replace(kind, key, entry, &old);
    if (another)
        vmm_let_go(&old);
    return !another;
}

void vmm_forget(void) {
    descriptors = 0;
}

/* A new handle; one of the same number that is still noted was let go before we noted that. */
static void made(CUmemGenericAllocationHandle handle, int device, uint64_t bytes) {
    struct owned memory = {
        .bytes = bytes, .device = device, .references = 1, .serial = owned_serial()};
    struct owned old;
    if (owned_replace(OWNED_HANDLE, handle, memory, &old) && !exported(old.serial))
        give_back(&old);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
    ENTER(cuMemCreate, handle, bytes, properties, flags);
    struct place place;
    if (!handle || !bytes || !properties ||
        !charge_location(&properties->location, properties->type, &place))
        return CALL_DRIVER(cuMemCreate, handle, bytes, properties, flags);
    if (!charge_reserve(&place, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemCreate, handle, bytes, properties, flags);
    if (answer == CUDA_SUCCESS)
        made(*handle, place.device, bytes);
    else
        charge_return(place.device, bytes);
    return answer;
}

/* Noted, so that what is bound to it goes with it. */
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
                           const CUmulticastObjectProp *properties) {
    ENTER(cuMulticastCreate, handle, properties);
    CUresult answer = CALL_DRIVER(cuMulticastCreate, handle, properties);
    if (answer == CUDA_SUCCESS)
        made(*handle, 0, 0);
    return answer;
}

/* A descriptor keeps the memory, wherever it is handed on to. It is known by its number and inode,
 * and looked at again when memory is short. */
CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    ENTER(cuMemExportToShareableHandle, shareable, handle, type, flags);
    struct owned memory;
    CUresult answer = CALL_DRIVER(cuMemExportToShareableHandle, shareable, handle, type, flags);
    if (answer != CUDA_SUCCESS || !owned_look_up(OWNED_HANDLE, handle, &memory))
        return answer;
    int descriptor = -1; /* of another type (a fabric handle): nobody can tell when it is let go */
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        memcpy(&descriptor, shareable, sizeof descriptor);
    uint64_t key = descriptor < 0 ? UINT64_MAX - owned_serial() : (uint64_t)descriptor + 1;
    closed(key); /* an earlier one of that number */
    struct owned export = {.bytes = memory.bytes,
                           .owner = descriptor < 0 ? 0 : inode_of(descriptor),
                           .device = memory.device,
                           .serial = memory.serial};
    owned_put(OWNED_EXPORT, key, export);
    descriptors++;
    return answer;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    ENTER(cuMemRelease, handle);
    struct owned memory;
    bool ours = owned_lower(OWNED_HANDLE, handle, UINT64_MAX, &memory);
    CUresult answer = CALL_DRIVER(cuMemRelease, handle);
    if (ours)
        released(answer, handle, &memory);
    return answer;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    ENTER(cuMemRetainAllocationHandle, handle, address);
    CUresult answer = CALL_DRIVER(cuMemRetainAllocationHandle, handle, address);
    if (answer == CUDA_SUCCESS)
        owned_raise(OWNED_HANDLE, *handle);
    return answer;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    ENTER(cuMemMap, pointer, bytes, offset, handle, flags);
    struct vmm_keeper keeper = vmm_keep(handle);
    CUresult answer = CALL_DRIVER(cuMemMap, pointer, bytes, offset, handle, flags);
    vmm_kept(&keeper, answer, OWNED_MAPPING, pointer, (struct owned){.bytes = bytes});
    return answer;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
    ENTER(cuMemUnmap, pointer, bytes);
    uint64_t before = owned_serial();
    CUresult answer = CALL_DRIVER(cuMemUnmap, pointer, bytes);
    if (answer != CUDA_SUCCESS)
        return answer;
    /* One call may remove several mappings, if it covers each of them whole; another thread may
     * have mapped there again since. */
    struct owned mapping;
    for (CUdeviceptr at = pointer; at - pointer < bytes;) {
        bool known = owned_take_older(OWNED_MAPPING, at, before, &mapping);
        if (known)
            vmm_let_go(&mapping);
        at += known ? mapping.bytes : GRANULE;
    }
    return answer;
}
