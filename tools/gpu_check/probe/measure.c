#include "measure.h"

#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_ROUNDS = 512, PAIRS = 16, LAUNCHES = 2000 };

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, long count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count ? values[count / 2] : 0;
}

double pair_nanoseconds(const struct row *row, size_t bytes, long rounds, int *answer) {
    double batch[MOST_ROUNDS];
    long done = 0;
    rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
    *answer = CUDA_SUCCESS;
    for (long round = -2; round < rounds; round++) { /* two to warm up */
        double began = now();
        for (int i = 0; i < PAIRS; i++)
            if ((*answer = row->take(bytes)) != CUDA_SUCCESS ||
                (*answer = row->drop()) != CUDA_SUCCESS)
                return 0;
        if (round >= 0)
            batch[done++] = (now() - began) / PAIRS;
    }
    return median(batch, done);
}

double refusal_nanoseconds(const struct row *row, size_t bytes, long rounds, int *answer) {
    double batch[MOST_ROUNDS];
    long done = 0;
    rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
    for (long round = -2; round < rounds; round++) {
        double began = now();
        for (int i = 0; i < PAIRS; i++)
            if ((*answer = row->take(bytes)) != CUDA_ERROR_OUT_OF_MEMORY)
                return 0;
        if (round >= 0)
            batch[done++] = (now() - began) / PAIRS;
    }
    return median(batch, done);
}

/* Which architectures a driver compiles for changes with its age; the newest of
 * these that it and the device both take. */
static CUfunction empty_kernel(void) {
    static const int targets[] = {75, 70, 60, 52, 35};
    char text[160];
    CUmodule module;
    CUfunction function = NULL;
    for (size_t i = 0; i < sizeof targets / sizeof *targets && !function; i++) {
        snprintf(text, sizeof text,
                 ".version 6.3\n.target sm_%d\n.address_size 64\n"
                 ".visible .entry gpu_check()\n{\n    ret;\n}\n",
                 targets[i]);
        if (p_cuModuleLoadData(&module, text) == CUDA_SUCCESS)
            p_cuModuleGetFunction(&function, module, "gpu_check");
    }
    return function;
}

double launch_nanoseconds(long rounds) {
    double batch[MOST_ROUNDS];
    long done = 0;
    CUfunction kernel = empty_kernel();
    rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
    for (long round = -2; kernel && round < rounds; round++) {
        double began = now();
        for (int i = 0; i < LAUNCHES; i++)
            if (p_cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS)
                return 0;
        if (p_cuCtxSynchronize() != CUDA_SUCCESS)
            return 0;
        if (round >= 0)
            batch[done++] = (now() - began) / LAUNCHES;
    }
    return median(batch, done);
}

static void uuid_text(const CUuuid *uuid, const char *prefix, char text[48]) {
    int at = sprintf(text, "%s", prefix);
    for (int i = 0; i < 16; i++)
        at += sprintf(text + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                      (unsigned char)uuid->bytes[i]);
}

#define NVML(name) ((__typeof__(&name))dlsym(nvml, #name))

struct nvml_view nvml_view(void) {
    struct nvml_view seen = {0};
    CUuuid uuid;
    char text[48];
    nvmlDevice_t device;
    nvmlMemory_t memory = {0};
    nvmlMemory_v2_t memory_v2 = {.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    CUresult asked =
        p_cuDeviceGetUuid_v2 ? p_cuDeviceGetUuid_v2(&uuid, 0) : p_cuDeviceGetUuid(&uuid, 0);
    if (!nvml || asked != CUDA_SUCCESS || NVML(nvmlInit_v2)() != NVML_SUCCESS)
        return seen;
    uuid_text(&uuid, "GPU-", text);
    nvmlReturn_t found = NVML(nvmlDeviceGetHandleByUUID)(text, &device);
    if (found != NVML_SUCCESS) {
        uuid_text(&uuid, "MIG-", text);
        found = NVML(nvmlDeviceGetHandleByUUID)(text, &device);
    }
    if (found == NVML_SUCCESS && NVML(nvmlDeviceGetMemoryInfo)(device, &memory) == NVML_SUCCESS) {
        seen.total = memory.total;
        seen.free = memory.free;
    }
    if (found == NVML_SUCCESS && NVML(nvmlDeviceGetMemoryInfo_v2) &&
        NVML(nvmlDeviceGetMemoryInfo_v2)(device, &memory_v2) == NVML_SUCCESS)
        seen.total_v2 = memory_v2.total;
    return seen;
}
