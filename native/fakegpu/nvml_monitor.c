/* The fake NVML: what monitors show of a passively cooled data-centre GPU that nobody has tuned. */
#include "nvml.h"

enum { CLOCKS = 4, LIMIT_MILLIWATTS = 250000, PERSISTENT = 1 };

static const unsigned int clocks_mhz[CLOCKS] = {1410, 1410, 1215,
                                                1275}; /* graphics, SM, memory, video */

static nvmlReturn_t not_supported(nvmlDevice_t device, const void *place) {
    NVML_ENTER(device, shared);
    (void)shared;
    return nvml_leave(place ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT);
}

static nvmlReturn_t fixed(nvmlDevice_t device, unsigned int *place, unsigned int value) {
    NVML_ENTER(device, shared);
    (void)shared;
    NVML_REQUIRE(place, NVML_ERROR_INVALID_ARGUMENT);
    *place = value;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *reading) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(reading && reading->sensor == 0, NVML_ERROR_INVALID_ARGUMENT);
    reading->celsius = (int)shared->temperature;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent) {
    return not_supported(device, percent);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    return fixed(device, milliwatts, LIMIT_MILLIWATTS);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts) {
    return fixed(device, milliwatts, LIMIT_MILLIWATTS);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
    bool known = type >= 0 && type < CLOCKS;
    return fixed(device, known ? mhz : NULL, known ? clocks_mhz[type] : 0);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

static nvmlReturn_t idle(nvmlDevice_t device, unsigned int *percent, unsigned int *microseconds) {
    nvmlReturn_t result = fixed(device, microseconds, 167000);
    return result == NVML_SUCCESS ? fixed(device, percent, 0) : result;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *microseconds) {
    return idle(device, percent, microseconds);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *microseconds) {
    return idle(device, percent, microseconds);
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter,
                                         unsigned int *kib_per_second) {
    return fixed(device, counter == 0 || counter == 1 ? kib_per_second : NULL, 0);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *state) {
    return fixed(device, (unsigned int *)state, 0);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, int *mode) {
    return fixed(device, (unsigned int *)mode, PERSISTENT);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int *mode) {
    return fixed(device, (unsigned int *)mode, 0);
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, int *active) {
    return fixed(device, (unsigned int *)active, 0);
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, int *mode) {
    return fixed(device, (unsigned int *)mode, 0);
}

nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, int *current, int *pending) {
    return not_supported(device, current && pending ? current : NULL); /* Windows only */
}

nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, int *current, int *pending) {
    return nvmlDeviceGetDriverModel(device, current, pending);
}

nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, void *info) {
    return not_supported(device, info);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is) {
    return fixed(device, is, 0);
}
