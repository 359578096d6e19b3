/*
 * Memory that has an IPC handle: charged to its maker, and to a process of the container that has
 * it open from when the maker has freed it or is dead. The handle's bytes are its number. What is
 * smaller than a page shares that with others, and is its maker's alone.
 */
#include "ipc.h"

#include "charge.h"

#define PAGE (2u << 20)

static _Atomic(int) any; /* something may be shared or opened */

static uint64_t number_of(const CUipcMemHandle *handle) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (unsigned i = 0; i < sizeof handle->reserved; i++)
        hash = (hash ^ (unsigned char)handle->reserved[i]) * 0x100000001b3u;
    return hash | UINT64_C(1) << 63; /* no number of exported memory */
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    ENTER(cuIpcGetMemHandle, handle, pointer);
    CUresult answer = CALL_DRIVER(cuIpcGetMemHandle, handle, pointer);
    struct owned memory;
    if (answer != CUDA_SUCCESS || !owned_look_up(OWNED_LINEAR, pointer, &memory) ||
        memory.bytes < PAGE || memory.target)
        return answer;
    uint64_t number = number_of(handle);
    any = 1;
    if (account_share(memory.device, number, memory.bytes))
        owned_aim(OWNED_LINEAR, pointer, memory.serial, number);
    return answer;
}

static CUresult opened(CUresult answer, const CUdeviceptr *pointer, const CUipcMemHandle *handle,
                       uint64_t context) {
    struct owned entry = {.owner = context, .references = 1, .target = number_of(handle)};
    if (answer != CUDA_SUCCESS || owned_raise(OWNED_OPENED, *pointer))
        return answer;
    any = 1;
    if (account_join(entry.target, &entry.device, &entry.bytes))
        owned_put(OWNED_OPENED, *pointer, entry);
    return answer;
}

#define OPEN(symbol)                                                                               \
    CUresult symbol(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags) {             \
        ENTER(symbol, pointer, handle, flags);                                                     \
        struct place place = {0};                                                                  \
        charge_current(&place);                                                                    \
        CUresult answer = CALL_DRIVER(symbol, pointer, handle, flags);                             \
        return opened(answer, pointer, &handle, place.context);                                    \
    }
OPEN(cuIpcOpenMemHandle)
OPEN(cuIpcOpenMemHandle_v2)

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
    ENTER(cuIpcCloseMemHandle, pointer);
    struct owned entry;
    bool ours = owned_lower(OWNED_OPENED, pointer, UINT64_MAX, &entry);
    CUresult answer = CALL_DRIVER(cuIpcCloseMemHandle, pointer);
    if (ours && answer != CUDA_SUCCESS)
        owned_raise(OWNED_OPENED, pointer);
    else if (ours && owned_end(OWNED_OPENED, pointer, entry.serial))
        account_let_go(entry.device, entry.target, entry.bytes, false);
    return answer;
}

void ipc_context_gone(uint64_t context, uint64_t serial) {
    static const enum owned_kind kinds[] = {OWNED_LINEAR, OWNED_OPENED};
    struct owned entry;
    uint64_t key;
    for (int i = 0; i < 2 && any; i++)
        for (uint64_t at = 0; owned_next(kinds[i], &at, &key, &entry);)
            if (entry.target && entry.owner == context &&
                owned_take_older(kinds[i], key, serial, &entry)) {
                at--; /* another entry may be there now */
                account_let_go(entry.device, entry.target, entry.bytes, kinds[i] == OWNED_LINEAR);
            }
}
