/* The file `config` of the folder: what devices there are and how they behave. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

const char *fg_folder(void) {
    const char *folder = getenv("FAKEGPU_DIR");
    return folder && *folder ? folder : "/var/lib/fakegpu";
}

static int read_device(FgConfig *config, const char *line) {
    if (config->count == FG_DEVICES) {
        return E2BIG;
    }
    FgDeviceConfig *device = &config->devices[config->count];
    unsigned long long total, reserved;
    if (sscanf(line, "device %d %63s %95s %llu %llu %d.%d", &device->index, device->uuid,
               device->model, &total, &reserved, &device->major, &device->minor) != 7 ||
        reserved > total) {
        return EINVAL;
    }
    for (char *c = device->model; *c; c++) {
        *c = *c == '_' ? ' ' : *c;
    }
    device->total = total * FG_MIB;
    device->reserved = reserved * FG_MIB;
    config->count++;
    return 0;
}

static int read_line(FgConfig *config, const char *line) {
    char key[32], value[32];
    if (sscanf(line, "%31s %31s", key, value) < 2 || key[0] == '#') {
        return 0;
    }
    uint64_t number = strtoull(value, NULL, 10);
    if (!strcmp(key, "device")) {
        return read_device(config, line);
    } else if (!strcmp(key, "driver")) {
        memcpy(config->driver, value, sizeof value);
    } else if (!strcmp(key, "cuda")) {
        config->cuda = (int)number;
    } else if (!strcmp(key, "granularity") && number) {
        config->granularity = number * FG_MIB;
    } else if (!strcmp(key, "pool_granularity") && number) {
        config->pool_granularity = number * FG_MIB;
    } else if (!strcmp(key, "pool_delay_us")) {
        config->pool_delay = (uint32_t)number;
    } else if (!strcmp(key, "context_delay_us")) {
        config->context_delay = (uint32_t)number;
    } else if (!strcmp(key, "context_mib")) {
        config->context = number * FG_MIB;
    } else if (!strcmp(key, "module_mib")) {
        config->module = number * FG_MIB;
    } else if (!strcmp(key, "memory_limits")) {
        config->memory_limits = number != 0;
    } else if (!strcmp(key, "na") && !strcmp(value, "used")) {
        config->na_used = true;
    } else if (!strcmp(key, "na") && !strcmp(value, "busy")) {
        config->na_busy = true;
    } else {
        return EINVAL;
    }
    return 0;
}

int fg_read_config(FgConfig *config) {
    *config = (FgConfig){.driver = "570.86.15",
                         .cuda = 12080,
                         .granularity = 2 * FG_MIB,
                         .pool_granularity = 32 * FG_MIB,
                         .module = 2 * FG_MIB};
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/config", fg_folder());
    FILE *file = fopen(path, "re");
    if (!file) {
        return errno;
    }
    int error = 0;
    while (!error && fgets(line, sizeof line, file)) {
        error = read_line(config, line);
    }
    fclose(file);
    return error;
}
