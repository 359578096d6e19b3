/* What the files of the fake NVML share. */
#ifndef FAKEGPU_NVML_H
#define FAKEGPU_NVML_H

#define NVML_API __attribute__((visibility("default")))
#include "nvml_abi.h"
#include "state.h"

/* A handle is the address of one of these, the same as long as the process lives. */
struct nvmlDevice_st {
    const FgDeviceConfig *config;
    int shared;
    int index; /* among the devices that this container was given */
};

extern FgState nvml_state;

/* The way in: initialised, a device of ours, not lost. On success the state is locked, and
 * nvml_leave unlocks it. */
nvmlReturn_t nvml_enter(nvmlDevice_t device, FgDevice **shared);
nvmlReturn_t nvml_leave(nvmlReturn_t result);
bool nvml_is_device(nvmlDevice_t device);
bool nvml_ready(void);

#define NVML_ENTER(device, shared)                                                                 \
    FgDevice *shared;                                                                              \
    do {                                                                                           \
        nvmlReturn_t entered = nvml_enter(device, &shared);                                        \
        if (entered != NVML_SUCCESS) {                                                             \
            return entered;                                                                        \
        }                                                                                          \
    } while (0)
#define NVML_REQUIRE(condition, error)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return nvml_leave(error);                                                              \
        }                                                                                          \
    } while (0)
#define NVML_FORWARD(symbol, parameters, call)                                                     \
    nvmlReturn_t symbol parameters {                                                               \
        return call;                                                                               \
    }

#endif
