/*
 * Arrays and mipmapped arrays. Rows take whole 512 bytes and an array whole 64 KiB, so that what
 * one costs is not what its shape says. As documented, cuArrayGetMemoryRequirements answers only
 * for arrays with deferred mapping, which take no memory.
 */
#include <stdlib.h>

#include "process.h"

enum { ROW = 512, BLOCK = 65536, DEFERRED = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING };

struct CUarray_st {
    CUDA_ARRAY3D_DESCRIPTOR shape;
    Device *device;
    size_t bytes;
    CUmipmappedArray mipmap; /* its owner, if it is a level */
    CUarray next;
};

struct CUmipmappedArray_st {
    struct CUarray_st level[16];
    unsigned int levels;
    Device *device;
    size_t bytes;
    CUmipmappedArray next;
};

static CUarray arrays;
static CUmipmappedArray mipmaps;

/* Bytes of a texel, or of a block of 4 x 4 texels; 0: no such format, or not with these channels.
 */
static size_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, size_t *side) {
    static const unsigned char of_blocks[] = {8, 8, 16, 16, 16, 16, 8, 8, 16, 16, 16, 16, 16, 16};
    static const unsigned char of_names[] = {1, 2, 4, 2, 4, 8};
    unsigned int format = shape->Format, channels = shape->NumChannels, first = format & 0x0f;
    bool usual = channels == 1 || channels == 2 || channels == 4;
    *side = 1;
    if (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB) {
        *side = 4;
        return of_blocks[format - CU_AD_FORMAT_BC1_UNORM];
    }
    if (format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4) {
        return of_names[first % 6];
    }
    switch (shape->Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return usual ? channels : 0;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return usual ? 2 * channels : 0;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return usual ? 4 * channels : 0;
    default:
        return 0;
    }
}

static bool shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, size_t *bytes) {
    size_t side, element = element_bytes(shape, &side);
    if (!element || !shape->Width || shape->Width > SIZE_MAX - side) {
        return false;
    }
    if (__builtin_mul_overflow(element, (shape->Width + side - 1) / side, bytes)) {
        return false;
    }
    *bytes = fg_round_up(*bytes, ROW);
    size_t height = shape->Height ? (shape->Height + side - 1) / side : 1;
    size_t depth = shape->Depth ? shape->Depth : 1;
    if (__builtin_mul_overflow(*bytes, height, bytes) ||
        __builtin_mul_overflow(*bytes, depth, bytes) || *bytes > SIZE_MAX - BLOCK) {
        return false;
    }
    *bytes = fg_round_up(*bytes, BLOCK);
    return true;
}

static CUresult create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    FG_ENTER_CONTEXT(device);
    size_t bytes = 0;
    FG_REQUIRE(array && shape && shape_bytes(shape, &bytes), CUDA_ERROR_INVALID_VALUE);
    CUarray made = calloc(1, sizeof *made);
    bool deferred = shape->Flags & DEFERRED;
    if (!made || (!deferred && !fg_take(device, FG_ARRAY, bytes))) {
        free(made);
        return fg_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *made = (struct CUarray_st){.shape = *shape, .device = device, .bytes = bytes, .next = arrays};
    *array = arrays = made;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
    return create(array, shape);
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape) {
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (shape) {
        wide = (CUDA_ARRAY3D_DESCRIPTOR){shape->Width,  shape->Height,      shape->Depth,
                                         shape->Format, shape->NumChannels, shape->Flags};
    }
    return create(array, shape ? &wide : NULL);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape) {
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (shape) {
        wide = (CUDA_ARRAY3D_DESCRIPTOR){.Width = shape->Width,
                                         .Height = shape->Height,
                                         .Format = shape->Format,
                                         .NumChannels = shape->NumChannels};
    }
    return create(array, shape ? &wide : NULL);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape) {
    CUDA_ARRAY_DESCRIPTOR wide = {0};
    if (shape) {
        wide =
            (CUDA_ARRAY_DESCRIPTOR){shape->Width, shape->Height, shape->Format, shape->NumChannels};
    }
    return cuArrayCreate_v2(array, shape ? &wide : NULL);
}

static CUarray *find(CUarray array) {
    CUarray *link = &arrays;
    while (*link && *link != array) {
        link = &(*link)->next;
    }
    return link;
}

static CUmipmappedArray *find_mipmap(CUmipmappedArray mipmap) {
    CUmipmappedArray *link = &mipmaps;
    while (*link && *link != mipmap) {
        link = &(*link)->next;
    }
    return link;
}

bool fg_array_is_sparse(const CUarrayMapInfo *map) {
    if (map->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        CUarray array = *find(map->resource.array);
        return array && array->shape.Flags & DEFERRED;
    }
    CUmipmappedArray mipmap = *find_mipmap(map->resource.mipmap);
    return mipmap && mipmap->level[0].shape.Flags & DEFERRED;
}

CUresult cuArrayDestroy(CUarray array) {
    FG_ENTER_CONTEXT(device);
    CUarray *link = find(array);
    FG_REQUIRE(array && *link, CUDA_ERROR_INVALID_HANDLE);
    *link = array->next;
    if (!(array->shape.Flags & DEFERRED)) {
        fg_give(array->device, FG_ARRAY, array->bytes);
    }
    fg_unbind_all(array);
    free(array);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray array) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(array && *find(array), CUDA_ERROR_INVALID_HANDLE);
    FG_REQUIRE(shape, CUDA_ERROR_INVALID_VALUE);
    *shape = array->shape;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray array,
                                      CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(array && *find(array), CUDA_ERROR_INVALID_HANDLE);
    FG_REQUIRE(requirements && array->shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING,
               CUDA_ERROR_INVALID_VALUE);
    *requirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = array->bytes, .alignment = BLOCK};
    return fg_leave(CUDA_SUCCESS);
}

static size_t half(size_t extent) {
    return extent > 1 ? extent / 2 : extent;
}

static bool shape_levels(CUmipmappedArray mipmap, CUDA_ARRAY3D_DESCRIPTOR shape) {
    for (unsigned int l = 0; l < mipmap->levels; l++) {
        CUarray level = &mipmap->level[l];
        *level = (struct CUarray_st){.shape = shape, .device = mipmap->device, .mipmap = mipmap};
        if (!shape_bytes(&shape, &level->bytes)) {
            return false;
        }
        mipmap->bytes += level->bytes;
        shape.Width = half(shape.Width);
        shape.Height = half(shape.Height);
        shape.Depth = shape.Flags & CUDA_ARRAY3D_LAYERED ? shape.Depth : half(shape.Depth);
    }
    return true;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                                unsigned int levels) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(array && shape && levels && levels <= 16, CUDA_ERROR_INVALID_VALUE);
    CUmipmappedArray made = calloc(1, sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->levels = levels;
    made->device = device;
    CUresult result = shape_levels(made, *shape) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && !(shape->Flags & DEFERRED) &&
        !fg_take(device, FG_ARRAY, made->bytes)) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        free(made);
        return fg_leave(result);
    }
    made->next = mipmaps;
    *array = mipmaps = made;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmap, unsigned int level) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(mipmap && *find_mipmap(mipmap), CUDA_ERROR_INVALID_HANDLE);
    FG_REQUIRE(array && level < mipmap->levels, CUDA_ERROR_INVALID_VALUE);
    *array = &mipmap->level[level];
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap) {
    FG_ENTER_CONTEXT(device);
    CUmipmappedArray *link = find_mipmap(mipmap);
    FG_REQUIRE(mipmap && *link, CUDA_ERROR_INVALID_HANDLE);
    *link = mipmap->next;
    if (!(mipmap->level[0].shape.Flags & DEFERRED)) {
        fg_give(mipmap->device, FG_ARRAY, mipmap->bytes);
    }
    fg_unbind_all(mipmap);
    free(mipmap);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements,
                                               CUmipmappedArray mipmap, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(mipmap && *find_mipmap(mipmap), CUDA_ERROR_INVALID_HANDLE);
    FG_REQUIRE(requirements && mipmap->level[0].shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING,
               CUDA_ERROR_INVALID_VALUE);
    *requirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = mipmap->bytes, .alignment = BLOCK};
    return fg_leave(CUDA_SUCCESS);
}

/* Arrays die with their context, or with the process that forked. */
void fg_arrays_drop(const Device *device) {
    for (CUarray *link = &arrays; *link;) {
        CUarray array = *link;
        if (!device || array->device == device) {
            *link = array->next;
            fg_unbind_all(array);
            free(array);
        } else {
            link = &array->next;
        }
    }
    for (CUmipmappedArray *link = &mipmaps; *link;) {
        CUmipmappedArray mipmap = *link;
        if (!device || mipmap->device == device) {
            *link = mipmap->next;
            fg_unbind_all(mipmap);
            free(mipmap);
        } else {
            link = &mipmap->next;
        }
    }
}
