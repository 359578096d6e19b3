/*
 * Memory that has an IPC handle: charged to its maker, and to a process of the container that has
 * it open from when the maker has freed it or is dead. The handle's bytes are its number. What is
 * smaller than a page shares that with others, but from then on it is charged as a page by itself:
 * it may outlive them.
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

/* The page of a small one is charged whatever the cap: its memory is there. */
static void share(CUdeviceptr pointer, const struct owned *memory, uint64_t number) {
    bool small = memory->bytes < PAGE;
    uint64_t bytes = small ? PAGE : memory->bytes;
    any = 1;
    if (small)
        account_settle(memory->device, PAGE, 0);
    bool noted = account_share(memory->device, number, bytes);
    if (noted && owned_aim(OWNED_LINEAR, pointer, memory->serial, number, bytes)) {
        if (small)
            charge_return_linear(memory->device, memory->bytes);
    } else if (small && noted) {
        account_let_go(memory->device, number, PAGE, true); /* it was freed meanwhile */
    } else if (small) {
        charge_return(memory->device, PAGE);
    }
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    ENTER(cuIpcGetMemHandle, handle, pointer);
    CUresult answer = CALL_DRIVER(cuIpcGetMemHandle, handle, pointer);
    struct owned memory;
    if (answer == CUDA_SUCCESS && owned_look_up(OWNED_LINEAR, pointer, &memory) && !memory.target)
        share(pointer, &memory, number_of(handle));
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
