/* The fake NVML: what monitors show of a passively cooled data-centre GPU that nobody has tuned. */
#define _GNU_SOURCE
#include <time.h>

#include "nvml.h"

enum { CLOCKS = 4, LIMIT_MILLIWATTS = 250000, PERSISTENT = 1, SAMPLING_MICROSECONDS = 167000 };

/* Graphics, SM, memory, video: nvmlClockType_t. */
static const unsigned int most_mhz[CLOCKS] = {1410, 1410, 1215, 1275};

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
    NVML_ENTER(device, shared);
    NVML_REQUIRE(mhz && type >= 0 && type < CLOCKS, NVML_ERROR_INVALID_ARGUMENT);
    const unsigned int now[CLOCKS] = {shared->sm_mhz, shared->sm_mhz, shared->memory_mhz,
                                      most_mhz[CLOCKS - 1]};
    *mhz = now[type];
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz) {
    bool known = type >= 0 && type < CLOCKS;
    return fixed(device, known ? mhz : NULL, known ? most_mhz[type] : 0);
}

/* A bit mask of nvmlClocksEventReasons; the older name does the same ("nvmlDeviceQueries" in
 * NVIDIA's NVML reference). */
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(reasons, NVML_ERROR_INVALID_ARGUMENT);
    *reasons = shared->throttle;
    return nvml_leave(NVML_SUCCESS);
}
NVML_FORWARD(nvmlDeviceGetCurrentClocksThrottleReasons,
             (nvmlDevice_t device, unsigned long long *reasons),
             nvmlDeviceGetCurrentClocksEventReasons(device, reasons))

static nvmlReturn_t coder(nvmlDevice_t device, unsigned int *percent, unsigned int *microseconds,
                          bool encodes) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(percent && microseconds, NVML_ERROR_INVALID_ARGUMENT);
    *percent = encodes ? shared->encoder_percent : shared->decoder_percent;
    *microseconds = SAMPLING_MICROSECONDS;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *microseconds) {
    return coder(device, percent, microseconds, true);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *microseconds) {
    return coder(device, percent, microseconds, false);
}

/* "This method queries a byte counter over a 20ms interval": the caller waits for that long. */
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter,
                                         unsigned int *kib_per_second) {
    const struct timespec interval = {.tv_nsec = 20000000};
    NVML_ENTER(device, shared);
    NVML_REQUIRE(kib_per_second && (counter == 0 || counter == 1), NVML_ERROR_INVALID_ARGUMENT);
    *kib_per_second = counter == 0 ? shared->sent_kib : shared->received_kib;
    nvml_leave(NVML_SUCCESS);
    nanosleep(&interval, NULL);
    return NVML_SUCCESS;
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
