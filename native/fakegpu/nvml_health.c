/* The fake NVML: load, errors and events. The figures are what fakegpuctl set. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "nvml.h"

enum { CORRECTED = 0, UNCORRECTED = 1 };

struct nvmlEventSet_st {
    bool watched[FG_DEVICES];
    uint64_t seen[FG_DEVICES];
    nvmlDevice_t device[FG_DEVICES];
};

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(utilization, NVML_ERROR_INVALID_ARGUMENT);
    fg_reap(&nvml_state);
    *utilization =
        (nvmlUtilization_t){fg_device_busy(&nvml_state, device->shared), shared->memory_percent};
    return nvml_leave(NVML_SUCCESS);
}

static unsigned long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* One sample for each process that was busy; none at all is an error, as in the real one. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *number, unsigned long long since) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(number, NVML_ERROR_INVALID_ARGUMENT);
    NVML_REQUIRE(!nvml_state.config.na_busy, NVML_ERROR_NOT_SUPPORTED);
    unsigned int room = samples ? *number : 0, found = 0;
    unsigned long long now = microseconds();
    fg_reap(&nvml_state);
    for (uint32_t s = 0; s < nvml_state.shared->high_slot && now > since; s++) {
        const FgSlot *slot = &nvml_state.shared->slot[s];
        uint32_t percent = slot->used && fg_slot_bytes(slot, device->shared) ? fg_busy(slot) : 0;
        pid_t pid = percent ? fg_holder(&nvml_state, (int)s) : 0;
        if (pid <= 0) {
            continue;
        }
        if (found < room) {
            samples[found] = (nvmlProcessUtilizationSample_t){
                .pid = (unsigned int)pid, .timeStamp = now, .smUtil = percent};
        }
        found++;
    }
    *number = found;
    NVML_REQUIRE(found, NVML_ERROR_NOT_FOUND);
    return nvml_leave(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(milliwatts, NVML_ERROR_INVALID_ARGUMENT);
    *milliwatts = shared->milliwatts;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(celsius && sensor == 0, NVML_ERROR_INVALID_ARGUMENT);
    *celsius = shared->temperature;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter,
                                         unsigned long long *errors) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(errors && (type == CORRECTED || type == UNCORRECTED), NVML_ERROR_INVALID_ARGUMENT);
    *errors = type == UNCORRECTED ? shared->ecc_uncorrected : shared->ecc_corrected;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, int type, int counter,
                                             int location, unsigned long long *errors) {
    return nvmlDeviceGetTotalEccErrors(device, type, counter, errors);
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, int cause, unsigned int *number,
                                       unsigned long long *addresses) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(number, NVML_ERROR_INVALID_ARGUMENT);
    unsigned int room = addresses ? *number : 0, found = cause == 0 ? 0 : shared->retired_pages;
    for (unsigned int i = 0; i < found && i < room; i++) {
        addresses[i] = 0x10000ull * (i + 1);
    }
    *number = found;
    return nvml_leave(found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, int *pending) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(pending, NVML_ERROR_INVALID_ARGUMENT);
    *pending = (int)shared->remap_pending;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrected,
                                       unsigned int *uncorrected, unsigned int *pending,
                                       unsigned int *failed) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(corrected && uncorrected && pending && failed, NVML_ERROR_INVALID_ARGUMENT);
    *corrected = 0;
    *uncorrected = shared->remapped_rows;
    *pending = shared->remap_pending;
    *failed = shared->remap_failed;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int number, nvmlFieldValue_t *values) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(values && number > 0, NVML_ERROR_INVALID_ARGUMENT);
    for (int i = 0; i < number; i++) {
        bool known = values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
        values[i].timestamp = (long long)microseconds();
        values[i].valueType = 1;
        values[i].value.ullVal = known ? shared->recovery_action : 0;
        values[i].nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    }
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!set) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *set = calloc(1, sizeof **set);
    return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

/* A set tells of what happens after it began to watch. */
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(set, NVML_ERROR_INVALID_ARGUMENT);
    NVML_REQUIRE((types & ~NVML_EVENT_XID) == 0, NVML_ERROR_NOT_SUPPORTED);
    set->watched[device->shared] = types & NVML_EVENT_XID;
    set->seen[device->shared] = shared->xid_count;
    set->device[device->shared] = device;
    return nvml_leave(NVML_SUCCESS);
}

static bool next_event(nvmlEventSet_t set, nvmlEventData_t *data) {
    for (int d = 0; d < FG_DEVICES; d++) {
        FgDevice *shared = &nvml_state.shared->device[d];
        if (set->watched[d]) {
            fg_advance(shared); /* a schedule has XIDs as well */
        }
        if (set->watched[d] && set->seen[d] < shared->xid_count) {
            if (shared->xid_count - set->seen[d] > FG_XIDS) { /* older ones are lost */
                set->seen[d] = shared->xid_count - FG_XIDS;
            }
            *data = (nvmlEventData_t){.device = set->device[d],
                                      .eventType = NVML_EVENT_XID,
                                      .eventData = shared->xids[set->seen[d]++ % FG_XIDS],
                                      .gpuInstanceId = UINT32_MAX,
                                      .computeInstanceId = UINT32_MAX};
            return true;
        }
    }
    return false;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!set || !data) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    const struct timespec moment = {.tv_nsec = 5000000};
    unsigned long long end = microseconds() + timeout * 1000ull;
    for (;;) {
        fg_lock(&nvml_state);
        bool found = next_event(set, data);
        fg_unlock(&nvml_state);
        if (found || microseconds() >= end) {
            return found ? NVML_SUCCESS : NVML_ERROR_TIMEOUT;
        }
        nanosleep(&moment, NULL);
    }
}
NVML_FORWARD(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout),
             nvmlEventSetWait_v2(set, data, timeout))

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    free(set);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
