#include "charge.h"

#include "pools.h"
#include "vmm.h"

#define ORDINALS   64
#define LARGE      (1u << 20)
#define LARGE_STEP (2u << 20)

_Thread_local int charge_depth;

/* The account's number of each of the driver's devices, plus one; 0: not looked up yet. Both stay
 * the same for the life of a process, but a forked child begins anew. */
static _Atomic(int) numbers[ORDINALS];

void charge_forget(void) {
    for (int i = 0; i < ORDINALS; i++)
        numbers[i] = 0;
}

bool charge_ordinal(CUdevice ordinal, struct place *out) {
    if (ordinal < 0 || ordinal >= ORDINALS)
        return false;
    int number = numbers[ordinal] - 1;
    if (number < 0) {
        CUuuid uuid;
        if (CALL_DRIVER(cuDeviceGetUuid_v2, &uuid, ordinal) != CUDA_SUCCESS &&
            CALL_DRIVER(cuDeviceGetUuid, &uuid, ordinal) != CUDA_SUCCESS)
            return false;
        number = account_device((const uint8_t *)uuid.bytes);
        if (number < 0)
            return false;
        numbers[ordinal] = number + 1;
    }
    *out = (struct place){.device = number, .ordinal = ordinal};
    return true;
}

bool charge_current(struct place *out) {
    CUdevice ordinal;
    CUcontext context = NULL;
    if (CALL_DRIVER(cuCtxGetDevice, &ordinal) != CUDA_SUCCESS || !charge_ordinal(ordinal, out))
        return false;
    CALL_DRIVER(cuCtxGetCurrent, &context);
    out->context = (uint64_t)(uintptr_t)context;
    return true;
}

bool charge_location(const CUmemLocation *location, struct place *out) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return false;
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return charge_ordinal(location->id, out);
    default:
        return charge_current(out) || charge_ordinal(0, out);
    }
}

uint64_t charge_whole(uint64_t bytes, uint64_t step) {
    return bytes > UINT64_MAX - step ? UINT64_MAX : (bytes + step - 1) / step * step;
}

uint64_t charge_rounded(uint64_t bytes) {
    return charge_whole(bytes, bytes < LARGE ? CHARGE_SMALL_STEP : LARGE_STEP);
}

bool charge_reserve(const struct place *place, uint64_t bytes) {
    if (account_take(place->device, ACCOUNT_MEMORY, bytes))
        return true;
    bool more = vmm_look_for_closed();
    more |= pools_trim(place);
    return more && account_take(place->device, ACCOUNT_MEMORY, bytes);
}

void charge_return(int device, uint64_t bytes) {
    account_give(device, ACCOUNT_MEMORY, bytes);
}

void charge_released(CUresult answer, enum owned_kind kind, uint64_t key,
                     const struct owned *entry) {
    FAULT(released);
    if (answer == CUDA_SUCCESS)
        charge_return(entry->device, entry->bytes);
    else
        owned_put(kind, key, *entry);
}

uint64_t charge_product(uint64_t width, uint64_t height) {
    uint64_t product;
    return __builtin_mul_overflow(width, height, &product) ? UINT64_MAX : product;
}
