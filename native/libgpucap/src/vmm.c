/*
 * Virtual memory management: physical memory made by cuMemCreate is charged until its last handle
 * is released and its last mapping removed. The device is named in the properties, so no context is
 * needed. Imported handles are not known here and are not charged: their maker pays.
 */
#include "charge.h"

static void unrefer(uint64_t handle) {
    struct owned memory;
    if (owned_refer(OWNED_HANDLE, handle, -1, &memory))
        charge_return(memory.device, memory.bytes);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
    ENTER(cuMemCreate, handle, bytes, properties, flags);
    struct place place;
    if (!handle || !bytes || !properties ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !charge_ordinal(properties->location.id, &place))
        return CALL_DRIVER(cuMemCreate, handle, bytes, properties, flags);
    if (!charge_reserve(&place, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemCreate, handle, bytes, properties, flags);
    if (answer == CUDA_SUCCESS)
        owned_put(OWNED_HANDLE, *handle,
                  (struct owned){.bytes = bytes, .device = place.device, .references = 1});
    else
        charge_return(place.device, bytes);
    return answer;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    ENTER(cuMemRelease, handle);
    CUresult answer = CALL_DRIVER(cuMemRelease, handle);
    if (answer == CUDA_SUCCESS)
        unrefer(handle);
    return answer;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    ENTER(cuMemRetainAllocationHandle, handle, address);
    struct owned memory;
    CUresult answer = CALL_DRIVER(cuMemRetainAllocationHandle, handle, address);
    if (answer == CUDA_SUCCESS)
        owned_refer(OWNED_HANDLE, *handle, 1, &memory);
    return answer;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    ENTER(cuMemMap, pointer, bytes, offset, handle, flags);
    struct owned memory;
    CUresult answer = CALL_DRIVER(cuMemMap, pointer, bytes, offset, handle, flags);
    if (answer == CUDA_SUCCESS) {
        owned_refer(OWNED_HANDLE, handle, 1, &memory);
        owned_put(OWNED_MAPPING, pointer, (struct owned){.bytes = bytes, .owner = handle});
    }
    return answer;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
    ENTER(cuMemUnmap, pointer, bytes);
    CUresult answer = CALL_DRIVER(cuMemUnmap, pointer, bytes);
    if (answer != CUDA_SUCCESS)
        return answer;
    /* One call may remove several mappings, if it covers each of them whole. */
    struct owned mapping;
    for (CUdeviceptr at = pointer; at - pointer < bytes && owned_take(OWNED_MAPPING, at, &mapping);
         at += mapping.bytes)
        unrefer(mapping.owner);
    return answer;
}
