/*
 * Arrays: their bytes follow from their shape as the driver lays it out: rows of whole 512 bytes,
 * levels of whole 64 KiB, and from a mebibyte on whole 2 MiB like any allocation. Where the driver
 * says what it needs for one (cuArrayGetMemoryRequirements) that is charged instead. Sparse arrays
 * and those with deferred mapping have no memory of their own: it comes from cuMemCreate.
 */
#include "charge.h"
#include "keep.h"

#define WITHOUT_MEMORY (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

#define ROW   512u
#define BLOCK 65536u

/* What a format puts side by side: so many bytes for `side` x `side` texels. */
struct element {
    uint64_t bytes;
    unsigned int side;
};

static uint64_t at_least_one(uint64_t extent) {
    return extent ? extent : 1; /* an array of fewer dimensions has zeros for the others */
}

static struct element element_of(CUarray_format format, unsigned int channels) {
    channels = (unsigned int)at_least_one(channels);
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return (struct element){channels, 1};
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return (struct element){2 * (uint64_t)channels, 1};
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
        return (struct element){1, 1};
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
        return (struct element){2, 1};
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
        return (struct element){4, 1};
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
        return (struct element){8, 1};
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
        return (struct element){8, 4};
    case CU_AD_FORMAT_BC2_UNORM:
    case CU_AD_FORMAT_BC2_UNORM_SRGB:
    case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB:
    case CU_AD_FORMAT_BC5_UNORM:
    case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16:
    case CU_AD_FORMAT_BC6H_SF16:
    case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
        return (struct element){16, 4};
    default: /* no format has wider channels; those of video take less than that */
        return (struct element){4 * (uint64_t)channels, 1};
    }
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int level) {
    struct element element = element_of(shape->Format, shape->NumChannels);
    uint64_t layers = at_least_one(shape->Depth);
    if (!(shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        layers = at_least_one(layers >> level);
    uint64_t across =
        charge_whole(at_least_one(shape->Width >> level), element.side) / element.side;
    uint64_t rows = charge_whole(at_least_one(shape->Height >> level), element.side) / element.side;
    uint64_t row = charge_whole(charge_product(across, element.bytes), ROW);
    return charge_whole(charge_product(row, charge_product(rows, layers)), BLOCK);
}

static uint64_t shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels) {
    uint64_t sum = 0;
    for (unsigned int level = 0; level < levels && level < 32; level++) {
        uint64_t bytes = level_bytes(shape, level);
        sum = sum + bytes < sum ? UINT64_MAX : sum + bytes;
    }
    return charge_rounded(sum);
}

struct array {
    bool noted; /* once it is made */
    struct place place;
    uint64_t charged;
};

/* false with OUT_OF_MEMORY to return; true: go on (charged or, without memory, not). */
static bool begin(struct array *array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels) {
    *array = (struct array){0};
    array->noted = shape && shape->Width && charge_current(&array->place);
    if (!array->noted || (shape->Flags & WITHOUT_MEMORY))
        return true;
    uint64_t bytes = shape_bytes(shape, levels);
    if (!charge_reserve(&array->place, bytes))
        return false;
    array->charged = bytes;
    return true;
}

/* Notes it, with the charge corrected to `needed` if the driver said it (0: it did not). */
static CUresult note(struct array *array, CUresult answer, enum owned_kind kind, const void *handle,
                     uint64_t needed) {
    if (answer != CUDA_SUCCESS) {
        charge_return(array->place.device, array->charged);
        return answer;
    }
    if (needed) {
        account_settle(array->place.device, needed, array->charged);
        array->charged = needed;
    }
    if (array->noted)
        owned_put(kind, (uint64_t)(uintptr_t)handle,
                  (struct owned){.bytes = array->charged,
                                 .owner = array->place.context,
                                 .device = array->place.device});
    return answer;
}

static CUresult end(struct array *array, CUresult answer, CUarray *out) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    if (array->charged && answer == CUDA_SUCCESS)
        CALL_DRIVER(cuArrayGetMemoryRequirements, &needs, *out, array->place.ordinal);
    return note(array, answer, OWNED_ARRAY, out ? *out : NULL, needs.size);
}

static CUresult end_mipmap(struct array *array, CUresult answer, CUmipmappedArray *out) {
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    if (array->charged && answer == CUDA_SUCCESS)
        CALL_DRIVER(cuMipmappedArrayGetMemoryRequirements, &needs, *out, array->place.ordinal);
    return note(array, answer, OWNED_MIPMAP, out ? *out : NULL, needs.size);
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *shape) {
    ENTER(cuArrayCreate_v2, out, shape);
    struct array array = {0};
    if (out && shape &&
        !begin(&array,
               &(CUDA_ARRAY3D_DESCRIPTOR){.Width = shape->Width,
                                          .Height = shape->Height,
                                          .Format = shape->Format,
                                          .NumChannels = shape->NumChannels},
               1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return end(&array, CALL_DRIVER(cuArrayCreate_v2, out, shape), out);
}

CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *shape) {
    ENTER(cuArrayCreate, out, shape);
    struct array array = {0};
    if (out && shape &&
        !begin(&array,
               &(CUDA_ARRAY3D_DESCRIPTOR){.Width = shape->Width,
                                          .Height = shape->Height,
                                          .Format = shape->Format,
                                          .NumChannels = shape->NumChannels},
               1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return end(&array, CALL_DRIVER(cuArrayCreate, out, shape), out);
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    ENTER(cuArray3DCreate_v2, out, shape);
    struct array array = {0};
    if (out && !begin(&array, shape, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return end(&array, CALL_DRIVER(cuArray3DCreate_v2, out, shape), out);
}

CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape) {
    ENTER(cuArray3DCreate, out, shape);
    struct array array = {0};
    if (out && shape &&
        !begin(&array,
               &(CUDA_ARRAY3D_DESCRIPTOR){.Width = shape->Width,
                                          .Height = shape->Height,
                                          .Depth = shape->Depth,
                                          .Format = shape->Format,
                                          .NumChannels = shape->NumChannels,
                                          .Flags = shape->Flags},
               1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return end(&array, CALL_DRIVER(cuArray3DCreate, out, shape), out);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                                unsigned int levels) {
    ENTER(cuMipmappedArrayCreate, out, shape, levels);
    struct array array = {0};
    if (out && !begin(&array, shape, levels ? levels : 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return end_mipmap(&array, CALL_DRIVER(cuMipmappedArrayCreate, out, shape, levels), out);
}

static void destroyed(CUresult answer, enum owned_kind kind, uint64_t key,
                      const struct owned *entry) {
    charge_released(answer, kind, key, entry);
    if (answer == CUDA_SUCCESS)
        keep_target_gone(entry->serial);
}

CUresult cuArrayDestroy(CUarray array) {
    ENTER(cuArrayDestroy, array);
    struct owned entry;
    uint64_t key = (uint64_t)(uintptr_t)array;
    bool ours = owned_take(OWNED_ARRAY, key, &entry);
    CUresult answer = CALL_DRIVER(cuArrayDestroy, array);
    if (ours)
        destroyed(answer, OWNED_ARRAY, key, &entry);
    return answer;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
    ENTER(cuMipmappedArrayDestroy, array);
    struct owned entry;
    uint64_t key = (uint64_t)(uintptr_t)array;
    bool ours = owned_take(OWNED_MIPMAP, key, &entry);
    CUresult answer = CALL_DRIVER(cuMipmappedArrayDestroy, array);
    if (ours)
        destroyed(answer, OWNED_MIPMAP, key, &entry);
    return answer;
}
