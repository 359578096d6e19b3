/*
 * Memory limits per cgroup, as drivers from r615 on keep them (nvmlDeviceSetMemoryLimits_v1): a
 * process obeys the limit nearest above it. A cgroup is known by its inode, which is the same in
 * every mount and namespace. FAKEGPU_CGROUP names a folder to stand for the process's cgroup, for
 * tests that cannot make one.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

static bool own_path(char *path, size_t size) {
    char line[4096];
    const char *stand_in = getenv("FAKEGPU_CGROUP");
    if (stand_in && *stand_in) {
        snprintf(path, size, "%s", stand_in);
        return true;
    }
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *group = strchr(line, '/'), *memory = strstr(line, ":memory:/");
        if (group && !strncmp(line, "0::/", 4) && !access("/sys/fs/cgroup/cgroup.procs", F_OK)) {
            snprintf(path, size, "/sys/fs/cgroup%s", group);
            found = true;
        } else if (memory) { /* version 1; a container has its own group mounted there */
            snprintf(path, size, "/sys/fs/cgroup/memory%s", group);
            if (access(path, F_OK)) {
                snprintf(path, size, "/sys/fs/cgroup/memory");
            }
            found = true;
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

void fg_own_cgroups(uint64_t *cgroups) {
    char path[4200];
    struct stat status;
    if (!own_path(path, sizeof path)) {
        return;
    }
    for (int i = 0; i < FG_ANCESTORS - 1 && !stat(path, &status); i++) {
        cgroups[i] = status.st_ino;
        char *slash = strrchr(path, '/');
        if (!strcmp(path, "/sys/fs/cgroup") || !slash || slash == path) {
            break;
        }
        *slash = '\0';
    }
}

FgLimit *fg_limit(FgState *state, int device, const uint64_t *cgroups) {
    for (int i = 0; i < FG_ANCESTORS && cgroups[i]; i++) {
        for (int l = 0; l < FG_LIMITS; l++) {
            FgLimit *limit = &state->shared->limit[l];
            if (limit->cgroup == cgroups[i] && limit->device == (uint32_t)device) {
                return limit;
            }
        }
    }
    return NULL;
}

uint64_t fg_limit_used(FgState *state, int device, uint64_t cgroup) {
    uint64_t sum = 0;
    for (uint32_t s = 0; s < state->shared->high_slot; s++) {
        const FgSlot *slot = &state->shared->slot[s];
        for (int i = 0; slot->used && i < FG_ANCESTORS && slot->cgroups[i]; i++) {
            if (slot->cgroups[i] == cgroup) {
                /* Managed memory counts as system memory there. */
                sum += fg_slot_bytes(slot, device) - slot->bytes[device][FG_MANAGED];
            }
        }
    }
    return sum;
}
