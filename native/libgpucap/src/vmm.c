/*
 * Virtual memory management: physical memory made by cuMemCreate is charged until its last handle
 * is released, its last mapping removed and its last descriptor closed. The device is named in the
 * properties, so no context is needed. Who imports it pays from when its maker no longer does; what
 * another container made is not known here.
 */
#include "charge.h"
#include "keep.h"

#define GRANULE (2u << 20) /* the least that is mapped */

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
        keep_made(*handle, place.device, bytes);
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
        keep_made(*handle, 0, 0);
    return answer;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    ENTER(cuMemExportToShareableHandle, shareable, handle, type, flags);
    CUresult answer = CALL_DRIVER(cuMemExportToShareableHandle, shareable, handle, type, flags);
    if (answer == CUDA_SUCCESS)
        keep_exported(shareable, type, handle);
    return answer;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type) {
    ENTER(cuMemImportFromShareableHandle, handle, shareable, type);
    bool descriptor = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    uint64_t number = descriptor ? keep_number_of((int)(intptr_t)shareable) : 0;
    CUresult answer = CALL_DRIVER(cuMemImportFromShareableHandle, handle, shareable, type);
    if (answer == CUDA_SUCCESS && number)
        keep_imported(*handle, number);
    return answer;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    ENTER(cuMemRelease, handle);
    struct owned memory;
    bool ours = owned_lower(OWNED_HANDLE, handle, UINT64_MAX, &memory);
    CUresult answer = CALL_DRIVER(cuMemRelease, handle);
    if (ours)
        keep_released(answer, handle, &memory);
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
    struct keeper keeper = keep_begin(handle);
    CUresult answer = CALL_DRIVER(cuMemMap, pointer, bytes, offset, handle, flags);
    keep_end(&keeper, answer, OWNED_MAPPING, pointer, (struct owned){.bytes = bytes});
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
            keep_drop(&mapping);
        at += known ? mapping.bytes : GRANULE;
    }
    return answer;
}
