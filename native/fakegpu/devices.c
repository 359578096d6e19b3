/* Devices: what there are and what they say of themselves. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

CUresult cuDriverGetVersion(int *version) {
    FgConfig config;
    if (!version) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = fg_read_config(&config) ? 12080 : config.cuda; /* needs no cuInit */
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    FG_ENTER();
    FG_REQUIRE(count, CUDA_ERROR_INVALID_VALUE);
    *count = fg.count;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    FG_ENTER_DEVICE(ordinal, known);
    FG_REQUIRE(device, CUDA_ERROR_INVALID_VALUE);
    *device = ordinal;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    if (!name || length <= 0) {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    snprintf(name, (size_t)length, "%s", device->config->model);
    return fg_leave(CUDA_SUCCESS);
}

/* GPU-xxxxxxxx-xxxx-…: the hexadecimal digits in order; what is no digit counts by its value. */
static CUuuid parse_uuid(const char *text) {
    CUuuid uuid = {{0}};
    int digits = 0;
    text = strncmp(text, "GPU-", 4) ? text : text + 4;
    for (; *text && digits < 32; text++) {
        char digit[2] = {*text, '\0'};
        char *end;
        long value = strtol(digit, &end, 16);
        if (*end == '\0') {
            uuid.bytes[digits / 2] = (char)(uuid.bytes[digits / 2] | value << (digits % 2 ? 0 : 4));
            digits++;
        }
    }
    return uuid;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(uuid, CUDA_ERROR_INVALID_VALUE);
    *uuid = parse_uuid(device->config->uuid);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal) {
    return cuDeviceGetUuid_v2(uuid, ordinal);
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    if (!id || length < 13) {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    snprintf(id, (size_t)length, "0000:%02X:00.0", device->config->index + 1);
    return fg_leave(CUDA_SUCCESS);
}

static int attribute_of(const Device *device, CUdevice_attribute attribute) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return device->config->major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return device->config->minor;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        return 512;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return 108;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return 2048;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return device->config->index + 1;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
        return 1;
    default:
        return 0;
    }
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    if (!value || attribute <= 0) {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    *value = attribute_of(device, attribute);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    if (!major || !minor) {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    *major = device->config->major;
    *minor = device->config->minor;
    return fg_leave(CUDA_SUCCESS);
}

/* What programs can use: CUDA's total leaves out what the driver keeps for itself. */
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(bytes, CUDA_ERROR_INVALID_VALUE);
    *bytes = fg_usable(&fg.state.shared->device[device->shared]);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice ordinal) {
    size_t wide = 0;
    CUresult result = cuDeviceTotalMem_v2(bytes ? &wide : NULL, ordinal);
    if (result == CUDA_SUCCESS) {
        *bytes = wide > UINT32_MAX ? UINT32_MAX : (unsigned int)wide;
    }
    return result;
}
