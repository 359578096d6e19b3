#include "charge.h"

#include "keep.h"
#include "lock.h"
#include "pools.h"

#include <string.h>

#define LARGE (1u << 20)
#define PAGE  (2u << 20)

_Thread_local int charge_depth;

/* Bytes of this process in small allocations, which share pages. */
static struct {
    struct lock lock;
    uint64_t bytes[ACCOUNT_NUMBERS];
} small;

/* The account's number of each of the driver's devices, plus one; 0: not looked up yet. Both stay
 * the same for the life of a driver, but a forked child begins anew. */
static _Atomic(int) numbers[CHARGE_ORDINALS];
static _Atomic(unsigned) numbers_driver; /* whose they are */

static void forget_numbers(void) {
    for (int i = 0; i < CHARGE_ORDINALS; i++)
        numbers[i] = 0;
}

void charge_forget(void) {
    forget_numbers();
    memset(&small, 0, sizeof small);
}

_Atomic(unsigned) charge_closed_drivers;

void charge_driver_closed(void) {
    static struct lock lock;
    lock_take(&lock);
    unsigned now = function_closed_drivers;
    if (now != charge_closed_drivers) {
        lock_take(&small.lock);
        memset(small.bytes, 0, sizeof small.bytes);
        lock_free(&small.lock);
        owned_driver_closed();
        pools_driver_closed();
        charge_closed_drivers = now;
    }
    lock_free(&lock);
}

bool charge_ordinal(CUdevice ordinal, struct place *out) {
    if (ordinal < 0 || ordinal >= CHARGE_ORDINALS)
        return false;
    if (numbers_driver != function_drivers) {
        forget_numbers();
        numbers_driver = function_drivers;
    }
    int number = numbers[ordinal] - 1;
    if (number < 0) {
        CUuuid uuid;
        if (CALL_DRIVER(cuDeviceGetUuid_v2, &uuid, ordinal) != CUDA_SUCCESS &&
            CALL_DRIVER(cuDeviceGetUuid, &uuid, ordinal) != CUDA_SUCCESS)
            return false;
        number = account_device((const uint8_t *)uuid.bytes);
        numbers[ordinal] = number + 1;
    }
    *out = (struct place){.device = number, .ordinal = ordinal};
    return true;
}

/* The device of the current context; without one the driver refuses whatever is asked of it. Where
 * the driver cannot say, an earlier failure perhaps, the first device pays. */
static bool current(CUdevice *ordinal) {
    switch (CALL_DRIVER(cuCtxGetDevice, ordinal)) {
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return false;
    case CUDA_SUCCESS:
        return true;
    default:
        *ordinal = 0;
        return true;
    }
}

bool charge_current(struct place *out) {
    CUdevice ordinal;
    CUcontext context = NULL;
    if (!current(&ordinal) || !charge_ordinal(ordinal, out))
        return false;
    CALL_DRIVER(cuCtxGetCurrent, &context);
    out->context = (uint64_t)(uintptr_t)context;
    return true;
}

bool charge_location(const CUmemLocation *location, CUmemAllocationType type, struct place *out) {
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return charge_ordinal(location->id, out);
    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
        return charge_ordinal(location->id & 0xff, out);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        if (type == CU_MEM_ALLOCATION_TYPE_PINNED)
            return false;
        break;
    default:
        break;
    }
    return charge_current(out) || charge_ordinal(0, out);
}

uint64_t charge_whole(uint64_t bytes, uint64_t step) {
    return bytes > UINT64_MAX - step ? UINT64_MAX : (bytes + step - 1) / step * step;
}

uint64_t charge_rounded(uint64_t bytes) {
    return charge_whole(bytes, bytes < LARGE ? CHARGE_SMALL_STEP : PAGE);
}

/* Of what charge_rounded() made of it: a large one has a page at least. */
static bool is_small(uint64_t charged) {
    return charged < PAGE;
}

static bool take(int device, uint64_t bytes) {
    return account_take(device, ACCOUNT_MEMORY, bytes);
}

/* Takes the pages that are full now and were not needed before. The lock is held meanwhile: another
 * thread must not use a page that may yet be refused. */
static bool take_linear(int device, uint64_t bytes) {
    if (!is_small(bytes))
        return take(device, bytes);
    lock_take(&small.lock);
    uint64_t *sum = &small.bytes[device];
    uint64_t have = charge_whole(*sum, PAGE), want = charge_whole(*sum + bytes, PAGE);
    bool fits = want == have || take(device, want - have);
    *sum += fits ? bytes : 0;
    lock_free(&small.lock);
    return fits;
}

static bool reserve(const struct place *place, uint64_t bytes, bool (*take_some)(int, uint64_t)) {
    if (take_some(place->device, bytes))
        return true;
    bool more = keep_look_for_closed();
    more |= pools_trim(place);
    return more && take_some(place->device, bytes);
}

static bool or_refused(bool reserved, const struct place *place) {
    if (!reserved)
        account_refused(place->device);
    return reserved;
}

bool charge_try(const struct place *place, uint64_t bytes) {
    return reserve(place, bytes, take);
}

bool charge_reserve(const struct place *place, uint64_t bytes) {
    return or_refused(charge_try(place, bytes), place);
}

bool charge_reserve_linear(const struct place *place, uint64_t bytes) {
    return or_refused(reserve(place, bytes, take_linear), place);
}

static void return_small(int device, uint64_t bytes) {
    lock_take(&small.lock);
    uint64_t *sum = &small.bytes[device], have = charge_whole(*sum, PAGE);
    *sum -= bytes;
    charge_return(device, have - charge_whole(*sum, PAGE));
    lock_free(&small.lock);
}

void charge_return_linear(int device, uint64_t bytes) {
    if (is_small(bytes))
        return_small(device, bytes);
    else
        charge_return(device, bytes);
}

void charge_return_context(enum owned_kind kind, uint64_t context, int device, uint64_t serial) {
    uint64_t few, many;
    owned_take_all_of(kind, context, serial, PAGE, &few, &many);
    if (kind == OWNED_LINEAR)
        return_small(device, few);
    else
        many += few;
    charge_return(device, many);
}

void charge_return(int device, uint64_t bytes) {
    account_give(device, ACCOUNT_MEMORY, bytes);
}

void charge_released(CUresult answer, enum owned_kind kind, uint64_t key,
                     const struct owned *entry) {
    FAULT(released);
    if (answer != CUDA_SUCCESS)
        owned_put(kind, key, *entry);
    else if (entry->target)
        account_let_go(entry->device, entry->target, entry->bytes, true);
    else if (kind == OWNED_LINEAR)
        charge_return_linear(entry->device, entry->bytes);
    else
        charge_return(entry->device, entry->bytes);
}

uint64_t charge_product(uint64_t width, uint64_t height) {
    uint64_t product;
    return __builtin_mul_overflow(width, height, &product) ? UINT64_MAX : product;
}
