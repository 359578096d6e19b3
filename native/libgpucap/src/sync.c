/* Memory at once: cuMemAlloc, cuMemAllocPitch, cuMemAllocManaged and cuMemFree. */
#include "charge.h"
#include "pools.h"

static CUresult keep(CUresult answer, const struct place *place, uint64_t bytes, uint64_t pointer) {
    FAULT(allocated);
    if (answer != CUDA_SUCCESS)
        charge_return_linear(place->device, bytes);
    else
        owned_put(OWNED_LINEAR, pointer,
                  (struct owned){.bytes = bytes, .owner = place->context, .device = place->device});
    FAULT(kept);
    return answer;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
    ENTER(cuMemAlloc_v2, pointer, bytes);
    struct place place;
    if (!pointer || !bytes || !charge_current(&place))
        return CALL_DRIVER(cuMemAlloc_v2, pointer, bytes);
    uint64_t charged = charge_rounded(bytes);
    if (!charge_reserve_linear(&place, charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemAlloc_v2, pointer, bytes);
    return keep(answer, &place, charged, *pointer);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes) {
    ENTER(cuMemAlloc, pointer, bytes);
    struct place place;
    if (!pointer || !bytes || !charge_current(&place))
        return CALL_DRIVER(cuMemAlloc, pointer, bytes);
    uint64_t charged = charge_rounded(bytes);
    if (!charge_reserve_linear(&place, charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemAlloc, pointer, bytes);
    return keep(answer, &place, charged, *pointer);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags) {
    ENTER(cuMemAllocManaged, pointer, bytes, flags);
    struct place place;
    if (!pointer || !bytes || !charge_current(&place))
        return CALL_DRIVER(cuMemAllocManaged, pointer, bytes, flags);
    uint64_t charged = charge_rounded(bytes);
    if (!charge_reserve_linear(&place, charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemAllocManaged, pointer, bytes, flags);
    return keep(answer, &place, charged, *pointer);
}

/* Rows begin at whole 512 bytes on every device so far. */
static uint64_t pitched(uint64_t width, uint64_t height) {
    return charge_rounded(charge_product(charge_whole(width, 512), height));
}

/* What the pitch really is, is known only afterwards. false: with that it is over the cap. */
static bool correct(const struct place *place, uint64_t *charged, uint64_t pitch, uint64_t height) {
    uint64_t bytes = charge_rounded(charge_product(pitch, height));
    if (bytes == *charged)
        return true;
    charge_return_linear(place->device, *charged);
    *charged = 0;
    if (!charge_reserve_linear(place, bytes))
        return false;
    *charged = bytes;
    return true;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element) {
    ENTER(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
    struct place place;
    if (!pointer || !pitch || !width || !height || !charge_current(&place))
        return CALL_DRIVER(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
    uint64_t charged = pitched(width, height);
    if (!charge_reserve_linear(&place, charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
    if (answer == CUDA_SUCCESS && !correct(&place, &charged, *pitch, height)) {
        CALL_DRIVER(cuMemFree_v2, *pointer);
        answer = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return keep(answer, &place, charged, *pointer);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element) {
    ENTER(cuMemAllocPitch, pointer, pitch, width, height, element);
    struct place place;
    if (!pointer || !pitch || !width || !height || !charge_current(&place))
        return CALL_DRIVER(cuMemAllocPitch, pointer, pitch, width, height, element);
    uint64_t charged = pitched(width, height);
    if (!charge_reserve_linear(&place, charged))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult answer = CALL_DRIVER(cuMemAllocPitch, pointer, pitch, width, height, element);
    if (answer == CUDA_SUCCESS && !correct(&place, &charged, *pitch, height)) {
        CALL_DRIVER(cuMemFree, *pointer);
        answer = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return keep(answer, &place, charged, *pointer);
}

/* A pointer that is not ours (a pool's, another process's, nonsense) is the driver's affair. */
CUresult cuMemFree_v2(CUdeviceptr pointer) {
    ENTER(cuMemFree_v2, pointer);
    struct owned entry;
    bool ours = owned_take(OWNED_LINEAR, pointer, &entry);
    FAULT(releasing);
    CUresult answer = CALL_DRIVER(cuMemFree_v2, pointer);
    if (ours)
        charge_released(answer, OWNED_LINEAR, pointer, &entry);
    else if (answer == CUDA_SUCCESS)
        pools_pointer_freed(pointer);
    return answer;
}

CUresult cuMemFree(CUdeviceptr_v1 pointer) {
    ENTER(cuMemFree, pointer);
    struct owned entry;
    bool ours = owned_take(OWNED_LINEAR, pointer, &entry);
    CUresult answer = CALL_DRIVER(cuMemFree, pointer);
    if (ours)
        charge_released(answer, OWNED_LINEAR, pointer, &entry);
    return answer;
}
