/*
 * Virtual memory management: physical memory made by cuMemCreate is charged until its last handle
 * is released and its last mapping removed. The device is named in the properties, so no context is
 * needed. Imported handles are not known here and are not charged: their maker pays.
 */
#include "charge.h"

#define GRANULE (2u << 20) /* the least that is mapped */

/* A reference less is noted before the driver's call, for afterwards the handle's number may be
 * that of another thread's new memory. What the memory costs is given back after it. */
static void released(CUresult answer, uint64_t handle, const struct owned *memory) {
    if (answer != CUDA_SUCCESS)
        owned_raise(OWNED_HANDLE, handle);
    else if (owned_end(OWNED_HANDLE, handle, memory->serial))
        charge_return(memory->device, memory->bytes);
}

static void unmapped(uint64_t handle) {
    struct owned memory;
    if (owned_lower(OWNED_HANDLE, handle, &memory))
        released(CUDA_SUCCESS, handle, &memory);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
    ENTER(cuMemCreate, handle, bytes, properties, flags);
    struct place place;
    if (!handle || !bytes || !properties || !charge_location(&properties->location, &place))
        return CALL_DRIVER(cuMemCreate, handle, bytes, properties, flags);
    if (!charge_reserve(&place, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemCreate, handle, bytes, properties, flags);
    struct owned memory = {
        .bytes = bytes, .device = place.device, .references = 1, .serial = owned_serial()};
    struct owned old;
    if (answer != CUDA_SUCCESS)
        charge_return(place.device, bytes);
    else if (owned_replace(OWNED_HANDLE, *handle, memory, &old))
        charge_return(old.device, old.bytes);
    return answer;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    ENTER(cuMemRelease, handle);
    struct owned memory;
    bool ours = owned_lower(OWNED_HANDLE, handle, &memory);
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
    bool ours = owned_raise(OWNED_HANDLE, handle);
    CUresult answer = CALL_DRIVER(cuMemMap, pointer, bytes, offset, handle, flags);
    if (answer == CUDA_SUCCESS) {
        struct owned mapping = {.bytes = bytes, .owner = handle, .serial = owned_serial()};
        struct owned old;
        if (owned_replace(OWNED_MAPPING, pointer, mapping, &old))
            unmapped(old.owner);
    } else if (ours) {
        unmapped(handle);
    }
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
            unmapped(mapping.owner);
        at += known ? mapping.bytes : GRANULE;
    }
    return answer;
}
