/*
 * The NVML functions that the library hooks or calls, and the layouts they fill, declared from
 * NVML's public documentation.
 */
#ifndef GPUCAP_NVML_CALLS_H
#define GPUCAP_NVML_CALLS_H

#include <assert.h>

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};
static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

struct nvml_memory_v2 {
    unsigned int version; /* the caller's: size and number of the layout */
    unsigned long long total, reserved, free, used;
};
static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");

/* nvmlReturn_t: 0 is success. */
int nvmlDeviceGetMemoryInfo(void *device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo_v2(void *device, struct nvml_memory_v2 *memory);
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length);

#endif
