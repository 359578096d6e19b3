/* Functions by name, version and stream flag (cuGetProcAddress), and errors by name. */
#include <stdlib.h>
#include <string.h>

#include "process.h"

typedef enum { ANY, LEGACY, PER_THREAD } StreamFlag;

static const struct {
    const char *name;
    void *address;
    int since;
    StreamFlag stream;
} FUNCTIONS[] = {
#define CUDA_FUNCTION(symbol, name, since, stream, parameters)                                     \
    {#name, (void *)symbol, since, stream},
#define CUDA_ALIAS(symbol, name, since, stream) {#name, (void *)symbol, since, stream},
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS
};

static void *find(const char *name, int version, uint64_t flags,
                  CUdriverProcAddressQueryResult *status) {
    StreamFlag other = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? LEGACY : PER_THREAD;
    void *found = NULL;
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        if (strcmp(FUNCTIONS[i].name, name) || FUNCTIONS[i].stream == other) {
            continue;
        }
        if (FUNCTIONS[i].since <= version) { /* in ascending order: the last one is the newest */
            found = FUNCTIONS[i].address;
            *status = CU_GET_PROC_ADDRESS_SUCCESS;
        } else if (!found) {
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        }
    }
    return found;
}

static CUresult resolve(const char *symbol, void **pfn, int version, uint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
    int driver = 0;
    cuDriverGetVersion(&driver);
    if (!symbol || !pfn || version > driver || flags > 3 || flags == 3) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *pfn = find(symbol, version, flags, status);
    return CUDA_SUCCESS;
}

/* Up to CUDA 11 what is not there is an error, from 12 on a status and a null pointer. */
CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags) {
    CUdriverProcAddressQueryResult status;
    CUresult result = resolve(symbol, pfn, version, flags, &status);
    return result == CUDA_SUCCESS && !*pfn ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult result = resolve(symbol, pfn, version, flags, &found);
    if (status) {
        *status = found;
    }
    return result;
}

/* The driver's private tables: there are none here. */
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    return table && id ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

static const struct {
    CUresult error;
    const char *name, *text;
} ERRORS[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device unavailable"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error"},
    {CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "operating system call failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "illegal state"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult describe(CUresult error, const char **text, bool name) {
    if (!text) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *text = NULL;
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
        if (ERRORS[i].error == error) {
            *text = name ? ERRORS[i].name : ERRORS[i].text;
        }
    }
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
    return describe(error, text, true);
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    return describe(error, text, false);
}
