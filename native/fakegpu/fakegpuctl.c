/*
 * Breaks pretended devices and shows what is used of them.
 *
 *   fakegpuctl show                       one line of JSON: devices, processes, limits
 *   fakegpuctl xid UUID CODE              an XID event
 *   fakegpuctl set UUID FIELD NUMBER      lost, next-error (a CUresult), gpu-percent, …
 *   fakegpuctl busy PID PERCENT           how busy a process keeps the multiprocessors
 *
 * The folder is FAKEGPU_DIR.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static const struct {
    const char *name;
    size_t offset, size;
} FIELDS[] = {
#define FIELD(name, member) {name, offsetof(FgDevice, member), sizeof(((FgDevice *)0)->member)}
    FIELD("lost", lost),
    FIELD("next-error", next_error),
    FIELD("recovery-action", recovery_action),
    FIELD("gpu-percent", gpu_percent),
    FIELD("memory-percent", memory_percent),
    FIELD("temperature", temperature),
    FIELD("milliwatts", milliwatts),
    FIELD("ecc-corrected", ecc_corrected),
    FIELD("ecc-uncorrected", ecc_uncorrected),
    FIELD("retired-pages", retired_pages),
    FIELD("remapped-rows", remapped_rows),
    FIELD("remap-pending", remap_pending),
    FIELD("remap-failed", remap_failed),
    FIELD("peak", peak),
#undef FIELD
};
static const char *const KINDS[FG_KINDS] = {"context", "module", "sync",  "managed",
                                            "pool",    "vmm",    "array", "graph"};

static void show_process(FgState *state, int s, const char *before) {
    const FgSlot *slot = &state->shared->slot[s];
    printf("%s{\"pid\": %d, \"bytes\": {", before, (int)fg_holder(state, s));
    const char *comma = "";
    for (uint32_t d = 0; d < state->shared->devices; d++) {
        if (!fg_slot_bytes(slot, (int)d)) {
            continue;
        }
        printf("%s\"%s\": {", comma, state->shared->device[d].uuid);
        for (int k = 0; k < FG_KINDS; k++) {
            printf("%s\"%s\": %llu", k ? ", " : "", KINDS[k],
                   (unsigned long long)slot->bytes[d][k]);
        }
        printf("}");
        comma = ", ";
    }
    printf("}}");
}

static void show(FgState *state) {
    const FgShared *shared = state->shared;
    printf("{\"devices\": [");
    for (uint32_t d = 0; d < shared->devices; d++) {
        const FgDevice *device = &shared->device[d];
        printf("%s{\"uuid\": \"%s\", \"total\": %llu, \"reserved\": %llu, \"used\": %llu, "
               "\"beside\": %llu, \"peak\": %llu}",
               d ? ", " : "", device->uuid, (unsigned long long)device->total,
               (unsigned long long)device->reserved, (unsigned long long)device->used,
               (unsigned long long)device->beside, (unsigned long long)device->peak);
    }
    printf("], \"processes\": [");
    const char *comma = "";
    for (uint32_t s = 0; s < shared->high_slot; s++) {
        if (shared->slot[s].used) {
            show_process(state, (int)s, comma);
            comma = ", ";
        }
    }
    printf("], \"limits\": [");
    comma = "";
    for (int l = 0; l < FG_LIMITS; l++) {
        const FgLimit *limit = &shared->limit[l];
        if (limit->cgroup) {
            printf("%s{\"uuid\": \"%s\", \"path\": \"%s\", \"soft\": %llu, \"hard\": %llu}", comma,
                   shared->device[limit->device].uuid, limit->path, (unsigned long long)limit->soft,
                   (unsigned long long)limit->hard);
            comma = ", ";
        }
    }
    printf("]}\n");
}

static FgDevice *find(FgState *state, const char *uuid) {
    for (uint32_t d = 0; d < state->shared->devices; d++) {
        if (!strcmp(state->shared->device[d].uuid, uuid)) {
            return &state->shared->device[d];
        }
    }
    return NULL;
}

static bool set(FgDevice *device, const char *name, uint64_t number) {
    for (size_t f = 0; device && f < sizeof FIELDS / sizeof *FIELDS; f++) {
        if (!strcmp(FIELDS[f].name, name)) {
            uint32_t narrow = (uint32_t)number;
            bool wide = FIELDS[f].size == sizeof number;
            memcpy((char *)device + FIELDS[f].offset, wide ? (void *)&number : (void *)&narrow,
                   FIELDS[f].size);
            return true;
        }
    }
    return false;
}

static bool raise_xid(FgDevice *device, uint64_t code) {
    if (device) {
        device->xids[device->xid_count++ % FG_XIDS] = code;
    }
    return device != NULL;
}

static bool busy(FgState *state, int pid, uint32_t percent) {
    for (uint32_t s = 0; s < state->shared->high_slot; s++) {
        FgSlot *slot = &state->shared->slot[s];
        if (slot->used && fg_holder(state, (int)s) == pid) {
            slot->sm_percent = percent;
            return true;
        }
    }
    return false;
}

static bool run(FgState *state, int count, char **words) {
    const char *verb = count > 1 ? words[1] : "";
    if (!strcmp(verb, "show") && count == 2) {
        fg_reap(state);
        show(state);
        return true;
    } else if (!strcmp(verb, "xid") && count == 4) {
        return raise_xid(find(state, words[2]), strtoull(words[3], NULL, 10));
    } else if (!strcmp(verb, "set") && count == 5) {
        return set(find(state, words[2]), words[3], strtoull(words[4], NULL, 10));
    } else if (!strcmp(verb, "busy") && count == 4) {
        return busy(state, atoi(words[2]), (uint32_t)atoi(words[3]));
    }
    return false;
}

int main(int count, char **words) {
    FgState state = {0};
    int error = fg_attach(&state, false);
    if (error) {
        fprintf(stderr, "fakegpuctl: %s: %s\n", fg_folder(), strerror(error));
        return 1;
    }
    fg_lock(&state);
    bool done = run(&state, count, words);
    fg_unlock(&state);
    if (!done) {
        fprintf(stderr, "fakegpuctl: no such command, device, field or process\n");
    }
    return done ? 0 : 2;
}
