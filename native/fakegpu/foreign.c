/*
 * Memory of other processes and interfaces. What was opened by an IPC handle costs its owner, and
 * who has it open from when the owner has freed it or is gone: freeing it first is "undefined
 * behavior" by "Memory Management", cuIpcOpenMemHandle, and this is the dearest reading; the
 * mappings of others are "unaffected" by one that is closed (cuIpcCloseMemHandle). Other
 * interfaces' memory costs nothing here.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"

typedef struct {
    uint64_t magic, share, bytes;
    int32_t slot;
    char uuid[16];
} IpcHandle;
_Static_assert(sizeof(IpcHandle) <= sizeof(CUipcMemHandle), "an IPC handle has 64 bytes");
static const uint64_t MAGIC = 0x637069756770616b;

struct CUextMemory_st {
    size_t bytes;
};

/* Addresses with memory of this process behind them: the other's bytes are not to be seen here. */
static CUresult open_foreign(Device *device, uint64_t share, size_t bytes, CUdeviceptr *pointer) {
    Allocation made = {.bytes = bytes,
                       .share = share,
                       .device = (int)(device - fg.device),
                       .kind = FG_SYNC,
                       .foreign = true,
                       .pointer = fg_map(bytes, false)};
    if (!made.pointer || !fg_remember(made)) {
        return CUDA_ERROR_MAP_FAILED;
    }
    *pointer = made.pointer;
    return CUDA_SUCCESS;
}

/* A small one shares its granule, which stays with it. */
static bool share(Device *device, Allocation *allocation) {
    uint64_t bytes = allocation->charged ? allocation->charged : fg.state.config.granularity;
    fg_lock(&fg.state);
    FgShare *made = fg_share_new(&fg.state, device->shared, FG_SYNC, bytes, NULL);
    allocation->share = made ? made->number : 0;
    fg_unlock(&fg.state);
    return made;
}

static bool join(uint64_t number) {
    fg_lock(&fg.state);
    FgShare *found = fg_share_find(&fg.state, number);
    if (found) {
        fg_share_join(&fg.state, found);
    }
    fg_unlock(&fg.state);
    return found;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    FG_ENTER_CONTEXT(device);
    Allocation *allocation = fg_find_range(pointer);
    FG_REQUIRE(handle && allocation && allocation->kind == FG_SYNC && !allocation->foreign,
               CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(allocation->share || share(device, allocation), CUDA_ERROR_OUT_OF_MEMORY);
    IpcHandle made = {.magic = MAGIC,
                      .share = allocation->share,
                      .bytes = allocation->bytes,
                      .slot = fg.state.slot};
    memcpy(made.uuid, device->config->uuid, sizeof made.uuid);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &made, sizeof made);
    return fg_leave(CUDA_SUCCESS);
}

static CUresult open_ipc(CUdeviceptr *pointer, const CUipcMemHandle *handle, unsigned int flags) {
    FG_ENTER_CONTEXT(device);
    IpcHandle opened;
    memcpy(&opened, handle, sizeof opened);
    FG_REQUIRE(pointer && flags == 1 && opened.magic == MAGIC, CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(opened.slot != fg.state.slot,
               CUDA_ERROR_INVALID_CONTEXT);                    /* not in its own process */
    FG_REQUIRE(join(opened.share), CUDA_ERROR_INVALID_HANDLE); /* it is gone */
    return fg_leave(open_foreign(device, opened.share, opened.bytes, pointer));
}
FG_FORWARD(cuIpcOpenMemHandle, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
           open_ipc(pointer, &handle, flags))
FG_FORWARD(cuIpcOpenMemHandle_v2,
           (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
           open_ipc(pointer, &handle, flags))

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    FG_ENTER_CONTEXT(device);
    Allocation *allocation = fg_find(pointer);
    FG_REQUIRE(allocation && allocation->foreign, CUDA_ERROR_INVALID_VALUE);
    fg_free(allocation);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *description) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(memory && description && description->type >= 1 && description->type <= 8 &&
                   description->size,
               CUDA_ERROR_INVALID_VALUE);
    CUexternalMemory made = malloc(sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->bytes = description->size;
    *memory = made;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *pointer, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *description) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(memory, CUDA_ERROR_INVALID_HANDLE);
    FG_REQUIRE(pointer && description && description->size &&
                   description->offset <= memory->bytes &&
                   description->size <= memory->bytes - description->offset,
               CUDA_ERROR_INVALID_VALUE);
    CUresult result = open_foreign(device, 0, description->size, pointer);
    if (result == CUDA_SUCCESS) {
        fg_find(*pointer)->foreign = false; /* a mapped buffer is freed with cuMemFree */
        fg_find(*pointer)->costless = true;
    }
    return fg_leave(result);
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(memory, CUDA_ERROR_INVALID_HANDLE);
    free(memory);
    return fg_leave(CUDA_SUCCESS);
}
