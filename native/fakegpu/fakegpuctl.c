/*
 * Breaks pretended devices and shows what is used of them.
 *
 *   fakegpuctl show                       one line of JSON: devices, processes, limits
 *   fakegpuctl show --wait                says with an empty line that it has the lock, and shows
 *                                         once a line has come on standard input
 *   fakegpuctl xid UUID CODE              an XID event
 *   fakegpuctl set UUID FIELD NUMBER      lost, next-error (a CUresult), gpu-percent, …
 *   fakegpuctl load UUID --util 70 …      what a device does from now on (README.md has the
 * options) fakegpuctl play UUID FILE             a schedule of that, with seconds; "-": standard
 * input fakegpuctl busy PID PERCENT           how busy a process keeps the multiprocessors, or
 *                                         SECONDS:PERCENT,… by turns
 *
 * A number in place of a UUID is the device's place in `show`.
 * The folder is FAKEGPU_DIR.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static const char *const KINDS[FG_KINDS] = {"context", "module", "sync",  "managed",
                                            "pool",    "vmm",    "array", "graph"};

static void show_process(FgState *state, int s, const char *before) {
    const FgSlot *slot = &state->shared->slot[s];
    pid_t holder = fg_holder(state, s); /* -1: dead, children keep it */
    printf("%s{\"pid\": %d, \"bytes\": {", before, (int)(holder < 0 ? slot->pid : holder));
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

/* By UUID, or by the place in `show`. */
static FgDevice *find(FgState *state, const char *name) {
    for (uint32_t d = 0; d < state->shared->devices; d++) {
        char place[16];
        snprintf(place, sizeof place, "%u", d);
        if (!strcmp(state->shared->device[d].uuid, name) || !strcmp(place, name)) {
            return &state->shared->device[d];
        }
    }
    return NULL;
}

static bool load(FgDevice *device, int count, char **words) {
    bool good = device && count && count % 2 == 0;
    for (int w = 0; good && w < count; w += 2) {
        good = fg_option(device, NULL, 0, words[w], words[w + 1]);
    }
    return good;
}

/* Read before the lock is taken. "-" is standard input. */
static bool read_schedule(const char *path, FgPlay *schedule) {
    bool input = !strcmp(path, "-");
    FILE *file = input ? stdin : fopen(path, "re");
    if (!file) {
        fprintf(stderr, "fakegpuctl: %s: %s\n", path, strerror(errno));
        return false;
    }
    int wrong = fg_read_schedule(file, schedule);
    if (!input) {
        fclose(file);
    }
    if (wrong > 0) {
        fprintf(stderr, "fakegpuctl: %s: line %d is wrong\n", path, wrong);
    } else if (wrong) {
        fprintf(stderr, "fakegpuctl: %s: there is no step in it\n", path);
    }
    return !wrong;
}

static bool busy(FgState *state, int pid, const char *text) {
    for (uint32_t s = 0; s < state->shared->high_slot; s++) {
        FgSlot *slot = &state->shared->slot[s];
        if (slot->used && fg_holder(state, (int)s) == pid) {
            return fg_set_busy(slot, text);
        }
    }
    return false;
}

static bool run(FgState *state, const FgPlay *schedule, int count, char **words) {
    const char *verb = count > 1 ? words[1] : "";
    bool wait = count == 3 && !strcmp(words[2], "--wait");
    if (!strcmp(verb, "show") && (count == 2 || wait)) {
        if (wait) {
            puts("");
            fflush(stdout);
            getchar();
        }
        fg_reap(state);
        show(state);
        return true;
    }
    FgDevice *device = count > 2 ? find(state, words[2]) : NULL;
    if (!strcmp(verb, "xid") && count == 4 && device) {
        fg_raise_xid(device, strtoull(words[3], NULL, 10));
        return true;
    } else if (!strcmp(verb, "set") && count == 5 && device) {
        return fg_set(device, words[3], strtoull(words[4], NULL, 10));
    } else if (!strcmp(verb, "load") && count > 4) {
        return load(device, count - 3, words + 3);
    } else if (!strcmp(verb, "play") && count == 4 && device) {
        fg_begin(device, schedule);
        return true;
    } else if (!strcmp(verb, "busy") && count == 4) {
        return busy(state, atoi(words[2]), words[3]);
    }
    return false;
}

int main(int count, char **words) {
    FgState state = {0};
    FgPlay schedule;
    if (count == 4 && !strcmp(words[1], "play") && !read_schedule(words[3], &schedule)) {
        return 2;
    }
    int error = fg_attach(&state, false);
    if (error) {
        fprintf(stderr, "fakegpuctl: %s: %s\n", fg_folder(), strerror(error));
        return 1;
    }
    fg_lock(&state);
    bool done = run(&state, &schedule, count, words);
    fg_unlock(&state);
    if (!done) {
        fprintf(stderr, "fakegpuctl: no such command, device, field, value or process\n");
    }
    return done ? 0 : 2;
}
