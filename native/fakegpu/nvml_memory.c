/* The fake NVML: memory, the processes that hold it, and the limits of their cgroups. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvml.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(memory, NVML_ERROR_INVALID_ARGUMENT);
    fg_reap(&nvml_state);
    memory->total = shared->total;
    memory->used = shared->reserved + shared->used;
    memory->free = shared->total - memory->used;
    return nvml_leave(NVML_SUCCESS);
}

/* Inside a cgroup with a limit, version 2 tells of the limit. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(memory, NVML_ERROR_INVALID_ARGUMENT);
    NVML_REQUIRE(memory->version == NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2),
                 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    uint64_t cgroups[FG_ANCESTORS] = {0};
    fg_own_cgroups(cgroups);
    fg_reap(&nvml_state);
    memory->total = shared->total;
    memory->reserved = shared->reserved;
    memory->used = shared->used;
    memory->free = shared->total - shared->reserved - shared->used;
    const FgLimit *limit = fg_limit(&nvml_state, device->shared, cgroups);
    if (limit && limit->hard < fg_usable(shared)) {
        uint64_t used = fg_limit_used(&nvml_state, device->shared, limit->cgroup);
        uint64_t headroom = limit->hard > used ? limit->hard - used : 0;
        memory->total = limit->hard;
        memory->reserved = 0;
        memory->used = used;
        memory->free = memory->free < headroom ? memory->free : headroom;
    }
    return nvml_leave(NVML_SUCCESS);
}

static unsigned int with_pid(const nvmlProcessInfo_t *known, unsigned int count, pid_t pid) {
    unsigned int i = 0;
    while (i < count && known[i].pid != (unsigned int)pid) {
        i++;
    }
    return i;
}

/* What processes hold on a device, with pids of the reader's namespace; those that have none there
 * are left out. One that has opened the driver twice is told of once. `wide` tells the layout. */
static nvmlReturn_t processes(nvmlDevice_t device, unsigned int *number, void *to, bool wide) {
    static nvmlProcessInfo_t known[FG_SLOTS];
    NVML_ENTER(device, shared);
    NVML_REQUIRE(number, NVML_ERROR_INVALID_ARGUMENT);
    unsigned int room = to ? *number : 0, found = 0;
    fg_reap(&nvml_state);
    for (uint32_t s = 0; s < nvml_state.shared->high_slot; s++) {
        const FgSlot *slot = &nvml_state.shared->slot[s];
        uint64_t used = fg_slot_bytes(slot, device->shared);
        pid_t pid = slot->used && used ? fg_holder(&nvml_state, (int)s) : 0;
        if (pid <= 0) {
            continue;
        }
        unsigned int at = with_pid(known, found, pid);
        if (at == found) {
            known[found++] = (nvmlProcessInfo_t){.pid = (unsigned int)pid,
                                                 .gpuInstanceId = UINT32_MAX,
                                                 .computeInstanceId = UINT32_MAX};
        }
        known[at].usedGpuMemory += used;
    }
    for (unsigned int i = 0; i < found && i < room; i++) {
        if (nvml_state.config.na_used) {
            known[i].usedGpuMemory = NVML_VALUE_NOT_AVAILABLE;
        }
        if (wide) {
            ((nvmlProcessInfo_t *)to)[i] = known[i];
        } else {
            ((nvmlProcessInfo_v1_t *)to)[i] = (nvmlProcessInfo_v1_t){
                .pid = known[i].pid, .usedGpuMemory = known[i].usedGpuMemory};
        }
    }
    *number = found;
    return nvml_leave(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}
NVML_FORWARD(nvmlDeviceGetComputeRunningProcesses,
             (nvmlDevice_t device, unsigned int *number, nvmlProcessInfo_v1_t *to),
             processes(device, number, to, false))
NVML_FORWARD(nvmlDeviceGetComputeRunningProcesses_v2,
             (nvmlDevice_t device, unsigned int *number, nvmlProcessInfo_t *to),
             processes(device, number, to, true))
NVML_FORWARD(nvmlDeviceGetComputeRunningProcesses_v3,
             (nvmlDevice_t device, unsigned int *number, nvmlProcessInfo_t *to),
             processes(device, number, to, true))

/* Nobody draws. */
static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *number) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(number, NVML_ERROR_INVALID_ARGUMENT);
    *number = 0;
    return nvml_leave(NVML_SUCCESS);
}
NVML_FORWARD(nvmlDeviceGetGraphicsRunningProcesses,
             (nvmlDevice_t device, unsigned int *number, nvmlProcessInfo_v1_t *to),
             no_processes(device, number))
NVML_FORWARD(nvmlDeviceGetGraphicsRunningProcesses_v2,
             (nvmlDevice_t device, unsigned int *number, nvmlProcessInfo_t *to),
             no_processes(device, number))
NVML_FORWARD(nvmlDeviceGetGraphicsRunningProcesses_v3,
             (nvmlDevice_t device, unsigned int *number, nvmlProcessInfo_t *to),
             no_processes(device, number))

static uint64_t cgroup_of(const char *path) {
    struct stat status;
    return path && !stat(path, &status) && S_ISDIR(status.st_mode) ? status.st_ino : 0;
}

static FgLimit *limit_for(int device, uint64_t cgroup) {
    FgLimit *free_one = NULL;
    for (int l = 0; l < FG_LIMITS; l++) {
        FgLimit *limit = &nvml_state.shared->limit[l];
        if (limit->cgroup == cgroup && limit->device == (uint32_t)device) {
            return limit;
        }
        free_one = !free_one && !limit->cgroup ? limit : free_one;
    }
    return free_one;
}

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t *limits) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(nvml_state.config.memory_limits, NVML_ERROR_FUNCTION_NOT_FOUND);
    NVML_REQUIRE(limits && limits->softLimit <= limits->hardLimit, NVML_ERROR_INVALID_ARGUMENT);
    NVML_REQUIRE(geteuid() == 0, NVML_ERROR_NO_PERMISSION);
    uint64_t cgroup = cgroup_of(limits->nameSpace);
    NVML_REQUIRE(cgroup, NVML_ERROR_NOT_FOUND);
    FgLimit *limit = limit_for(device->shared, cgroup);
    NVML_REQUIRE(limit, NVML_ERROR_INSUFFICIENT_RESOURCES);
    if (limits->softLimit == 0 && limits->hardLimit == NVML_DEVICE_MEMORY_LIMIT_MAX) {
        *limit = (FgLimit){0};
        return nvml_leave(NVML_SUCCESS);
    }
    *limit = (FgLimit){.cgroup = cgroup,
                       .device = (uint32_t)device->shared,
                       .soft = limits->softLimit,
                       .hard = limits->hardLimit};
    strncpy(limit->path, limits->nameSpace, sizeof limit->path - 1);
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t *limits) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(nvml_state.config.memory_limits, NVML_ERROR_FUNCTION_NOT_FOUND);
    NVML_REQUIRE(limits, NVML_ERROR_INVALID_ARGUMENT);
    uint64_t cgroup = cgroup_of(limits->nameSpace);
    NVML_REQUIRE(cgroup, NVML_ERROR_NOT_FOUND);
    fg_reap(&nvml_state);
    const FgLimit *limit = limit_for(device->shared, cgroup);
    bool set = limit && limit->cgroup == cgroup;
    limits->softLimit = set ? limit->soft : 0;
    limits->hardLimit = set ? limit->hard : NVML_DEVICE_MEMORY_LIMIT_MAX;
    limits->currentUsed = fg_limit_used(&nvml_state, device->shared, cgroup);
    return nvml_leave(NVML_SUCCESS);
}
