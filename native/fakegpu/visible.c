/*
 * Which devices a process sees. A container was given those that have a file in /dev/fakegpu, as a
 * real one has its device files; CUDA_VISIBLE_DEVICES then chooses and orders, for CUDA alone.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

static bool given(const FgDeviceConfig *device) {
    const char *folder = getenv("FAKEGPU_DEV");
    folder = folder && *folder ? folder : "/dev/fakegpu";
    if (access(folder, F_OK) != 0) {
        return true;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, device->uuid);
    return access(path, F_OK) == 0;
}

/* An ordinal among the devices given, or a UUID or an unambiguous beginning of one. */
static int named(const FgConfig *config, const int *devices, int count, const char *name) {
    char *end;
    long ordinal = strtol(name, &end, 10);
    if (end != name && *end == '\0') {
        return ordinal >= 0 && ordinal < count ? devices[ordinal] : -1;
    }
    int found = -1;
    for (int i = 0; i < count && *name; i++) {
        if (!strncmp(config->devices[devices[i]].uuid, name, strlen(name))) {
            if (found >= 0) {
                return -1;
            }
            found = devices[i];
        }
    }
    return found;
}

/* NVIDIA's rules: the list ends at the first name that is no device; a device twice empties it. */
static int chosen(const FgConfig *config, int *devices, int count, const char *wish) {
    char list[1024];
    int result[FG_DEVICES], size = 0;
    snprintf(list, sizeof list, "%s", wish);
    char *rest = list;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        int device = named(config, devices, count, name);
        if (device < 0) {
            break;
        }
        for (int i = 0; i < size; i++) {
            if (result[i] == device) {
                return 0;
            }
        }
        result[size++] = device;
    }
    memcpy(devices, result, sizeof(int) * (size_t)size);
    return size;
}

int fg_visible(const FgConfig *config, bool cuda, int *visible) {
    int count = 0;
    for (int i = 0; i < config->count; i++) {
        if (given(&config->devices[i])) {
            visible[count++] = i;
        }
    }
    const char *wish = cuda ? getenv("CUDA_VISIBLE_DEVICES") : NULL;
    return wish ? chosen(config, visible, count, wish) : count;
}
