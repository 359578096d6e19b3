/*
 * Views: a container with a cap sees a device of that size. total = min(cap, physical), free =
 * min(cap - held, physically free), never negative. The driver is asked with the program's own
 * arguments, NULL included; what it wrote is then made smaller.
 */
#include "views.h"

#include "charge.h"
#include "keep.h"
#include "limit.h"
#include "pools.h"

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t views_total(uint64_t physical) {
    return least(limit_bytes(), physical);
}

uint64_t views_free(int device, uint64_t physically_free) {
    uint64_t cap = limit_bytes();
    if (cap == LIMIT_NONE)
        return physically_free;
    keep_look_for_closed();
    uint64_t held = account_held(device);
    return least(cap > held ? cap - held : 0, physically_free);
}

#define GET_INFO(symbol, integer)                                                                  \
    CUresult symbol(integer *free, integer *total) {                                               \
        ENTER(symbol, free, total);                                                                \
        CUresult answer = CALL_DRIVER(symbol, free, total);                                        \
        struct place place;                                                                        \
        if (answer != CUDA_SUCCESS || !charge_current(&place))                                     \
            return answer;                                                                         \
        pools_settle_freed();                                                                      \
        if (free)                                                                                  \
            *free = (integer)views_free(place.device, *free);                                      \
        if (total)                                                                                 \
            *total = (integer)views_total(*total);                                                 \
        return answer;                                                                             \
    }
GET_INFO(cuMemGetInfo, unsigned int)
GET_INFO(cuMemGetInfo_v2, size_t)

#define TOTAL_MEM(symbol, integer)                                                                 \
    CUresult symbol(integer *bytes, CUdevice device) {                                             \
        ENTER(symbol, bytes, device);                                                              \
        CUresult answer = CALL_DRIVER(symbol, bytes, device);                                      \
        if (answer == CUDA_SUCCESS && bytes)                                                       \
            *bytes = (integer)views_total(*bytes);                                                 \
        return answer;                                                                             \
    }
TOTAL_MEM(cuDeviceTotalMem, unsigned int)
TOTAL_MEM(cuDeviceTotalMem_v2, size_t)
