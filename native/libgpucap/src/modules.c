/*
 * Modules and libraries: their code and global variables are memory of the context's kind, which
 * the agent measures. What one load takes is not known beforehand; a container that is at its cap
 * or above gets no more of them.
 */
#include "charge.h"
#include "limit.h"
#include "pools.h"

static bool is_refused(void) {
    struct place place;
    if (!charge_current(&place) || account_held(place.device) < limit_bytes())
        return false;
    pools_trim(&place);
    if (account_held(place.device) < limit_bytes())
        return false;
    account_refused(place.device);
    return true;
}

#define LOAD(symbol, parameters, ...)                                                              \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        if (out && is_refused())                                                                   \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        return CALL_DRIVER(symbol, __VA_ARGS__);                                                   \
    }
LOAD(cuModuleLoad, (CUmodule * out, const char *path), out, path)
LOAD(cuModuleLoadData, (CUmodule * out, const void *image), out, image)
LOAD(cuModuleLoadDataEx,
     (CUmodule * out, const void *image, unsigned int count, int *options, void **values), out,
     image, count, options, values)
LOAD(cuModuleLoadFatBinary, (CUmodule * out, const void *image), out, image)
LOAD(cuLibraryLoadData,
     (CUlibrary * out, const void *image, int *jit, void **jit_values, unsigned int jit_count,
      int *options, void **values, unsigned int count),
     out, image, jit, jit_values, jit_count, options, values, count)
LOAD(cuLibraryLoadFromFile,
     (CUlibrary * out, const char *path, int *jit, void **jit_values, unsigned int jit_count,
      int *options, void **values, unsigned int count),
     out, path, jit, jit_values, jit_count, options, values, count)
