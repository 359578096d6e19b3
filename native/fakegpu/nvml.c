/*
 * The fake NVML: the driver and its devices. It reads what the fake CUDA writes, and never takes a
 * slot itself. NVML pays no attention to CUDA_VISIBLE_DEVICES.
 */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

FgState nvml_state;
static struct nvmlDevice_st devices[FG_DEVICES];
static int count;
static unsigned int users;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool start(void) {
    int visible[FG_DEVICES];
    if (fg_attach(&nvml_state, false)) {
        return false;
    }
    count = fg_visible(&nvml_state.config, false, visible);
    for (int i = 0; i < count; i++) {
        devices[i] = (struct nvmlDevice_st){.config = &nvml_state.config.devices[visible[i]],
                                            .shared = nvml_state.to_shared[visible[i]],
                                            .index = i};
    }
    return true;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    pthread_mutex_lock(&mutex);
    bool started = users > 0 || start();
    users += started;
    pthread_mutex_unlock(&mutex);
    return started ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}
NVML_FORWARD(nvmlInit_v2, (void), nvmlInitWithFlags(0))
NVML_FORWARD(nvmlInit, (void), nvmlInitWithFlags(0))

nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&mutex);
    bool was = users > 0;
    users -=
        was; /* the map stays: closing the lock file would drop the CUDA library's lock on it */
    pthread_mutex_unlock(&mutex);
    return was ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

bool nvml_ready(void) {
    return __atomic_load_n(&users, __ATOMIC_ACQUIRE) > 0;
}

bool nvml_is_device(nvmlDevice_t device) {
    return device >= devices && device < devices + count;
}

nvmlReturn_t nvml_enter(nvmlDevice_t device, FgDevice **shared) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!nvml_is_device(device)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    fg_lock(&nvml_state);
    *shared = &nvml_state.shared->device[device->shared];
    fg_advance(*shared);
    return (*shared)->lost ? nvml_leave(NVML_ERROR_GPU_IS_LOST) : NVML_SUCCESS;
}

nvmlReturn_t nvml_leave(nvmlReturn_t result) {
    fg_unlock(&nvml_state);
    return result;
}

const char *nvmlErrorString(nvmlReturn_t result) {
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT:
        return "Timeout";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "Unknown Error";
    }
}

static nvmlReturn_t text(char *to, unsigned int length, const char *from) {
    if (!to) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (strlen(from) >= length) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    strcpy(to, from);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    return nvml_ready() ? text(version, length, nvml_state.config.driver)
                        : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    return nvmlSystemGetDriverVersion(version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    FgConfig config; /* works without nvmlInit */
    if (!version) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (fg_read_config(&config)) {
        return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    *version = config.cuda;
    return NVML_SUCCESS;
}
NVML_FORWARD(nvmlSystemGetCudaDriverVersion, (int *version),
             nvmlSystemGetCudaDriverVersion_v2(version))

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *number) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!number) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *number = (unsigned int)count;
    return NVML_SUCCESS;
}
NVML_FORWARD(nvmlDeviceGetCount, (unsigned int *number), nvmlDeviceGetCount_v2(number))

static nvmlReturn_t handle(int index, nvmlDevice_t *device, nvmlReturn_t none) {
    if (!nvml_ready()) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (!device || index < 0 || index >= count) {
        return device ? none : NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = &devices[index];
    FgDevice *shared = &nvml_state.shared->device[devices[index].shared];
    fg_lock(&nvml_state);
    fg_advance(shared);
    bool lost = shared->lost;
    fg_unlock(&nvml_state);
    return lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    return handle(index < FG_DEVICES ? (int)index : -1, device, NVML_ERROR_INVALID_ARGUMENT);
}
NVML_FORWARD(nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device),
             nvmlDeviceGetHandleByIndex_v2(index, device))

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    int found = -1;
    for (int i = 0; uuid && i < count; i++) {
        found = strcmp(devices[i].config->uuid, uuid) ? found : i;
    }
    return handle(found, uuid ? device : NULL, NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    NVML_ENTER(device, shared);
    return nvml_leave(text(name, length, device->config->model));
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    NVML_ENTER(device, shared);
    return nvml_leave(text(uuid, length, device->config->uuid));
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(index, NVML_ERROR_INVALID_ARGUMENT);
    *index = (unsigned int)device->index;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(minor, NVML_ERROR_INVALID_ARGUMENT);
    *minor = (unsigned int)device->config->index;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(pci, NVML_ERROR_INVALID_ARGUMENT);
    *pci = (nvmlPciInfo_t){.bus = (unsigned int)device->config->index + 1};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus & 0xff);
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(major && minor, NVML_ERROR_INVALID_ARGUMENT);
    *major = device->config->major;
    *minor = device->config->minor;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                  unsigned int *pending) {
    NVML_ENTER(device, shared);
    NVML_REQUIRE(current && pending, NVML_ERROR_INVALID_ARGUMENT);
    *current = *pending = 0;
    return nvml_leave(NVML_SUCCESS);
}
