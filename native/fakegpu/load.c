/*
 * What devices and processes do: figures that are set, and schedules of them. Nobody has to run for
 * a schedule to go on: who looks at a device applies what has become due since the last look, in
 * its order and at its time, so that means over time are exact.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvml_abi.h"
#include "state.h"

enum { XID = UINT32_MAX, MOST_PERCENT = 100, MOST_LOOPS = 1000, MOST_SECONDS = 1000000 };

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
    FIELD("tensor-percent", tensor_percent),
    FIELD("encoder-percent", encoder_percent),
    FIELD("decoder-percent", decoder_percent),
    FIELD("temperature", temperature),
    FIELD("milliwatts", milliwatts),
    FIELD("sm-mhz", sm_mhz),
    FIELD("memory-mhz", memory_mhz),
    FIELD("received-kib", received_kib),
    FIELD("sent-kib", sent_kib),
    FIELD("throttle", throttle),
    FIELD("ecc-corrected", ecc_corrected),
    FIELD("ecc-uncorrected", ecc_uncorrected),
    FIELD("retired-pages", retired_pages),
    FIELD("remapped-rows", remapped_rows),
    FIELD("remap-pending", remap_pending),
    FIELD("remap-failed", remap_failed),
    FIELD("peak", peak),
#undef FIELD
};

/* What people say, in their units; `xid` and `throttle` are on their own. */
static const struct {
    const char *option, *field;
    uint64_t factor, most;
} OPTIONS[] = {
    {"--util", "gpu-percent", 1, MOST_PERCENT},
    {"--memory-util", "memory-percent", 1, MOST_PERCENT},
    {"--tensor", "tensor-percent", 1, MOST_PERCENT},
    {"--encoder", "encoder-percent", 1, MOST_PERCENT},
    {"--decoder", "decoder-percent", 1, MOST_PERCENT},
    {"--power", "milliwatts", 1000, 100000},
    {"--temperature", "temperature", 1, 1000},
    {"--sm-clock", "sm-mhz", 1, 100000},
    {"--memory-clock", "memory-mhz", 1, 100000},
    {"--pcie-rx", "received-kib", 1024, 1000000},
    {"--pcie-tx", "sent-kib", 1024, 1000000},
    {"--ecc", "ecc-uncorrected", 1, UINT32_MAX},
    {"--lost", "lost", 1, 1},
};

static const struct {
    const char *word;
    uint64_t bits;
} REASONS[] = {
    {"none", 0},
    {"idle", 0x01},
    {"power-cap", NVML_CLOCKS_SW_POWER_CAP},
    {"slowdown", NVML_CLOCKS_HW_SLOWDOWN},
    {"thermal", NVML_CLOCKS_SW_THERMAL_SLOWDOWN},
    {"hw-thermal", NVML_CLOCKS_HW_THERMAL_SLOWDOWN | NVML_CLOCKS_HW_SLOWDOWN},
    {"power-brake", NVML_CLOCKS_HW_POWER_BRAKE_SLOWDOWN | NVML_CLOCKS_HW_SLOWDOWN},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint32_t field_of(const char *name) {
    uint32_t f = 0;
    while (f < COUNT(FIELDS) && strcmp(FIELDS[f].name, name)) {
        f++;
    }
    return f;
}

static void put(FgDevice *device, uint32_t field, uint64_t number) {
    uint32_t narrow = (uint32_t)number;
    if (field == XID) {
        fg_raise_xid(device, number);
    } else if (field < COUNT(FIELDS)) {
        bool wide = FIELDS[field].size == sizeof number;
        memcpy((char *)device + FIELDS[field].offset, wide ? (void *)&number : (void *)&narrow,
               FIELDS[field].size);
    }
}

void fg_raise_xid(FgDevice *device, uint64_t code) {
    device->xids[device->xid_count++ % FG_XIDS] = code;
}

bool fg_set(FgDevice *device, const char *name, uint64_t number) {
    uint32_t field = field_of(name);
    if (field == COUNT(FIELDS)) {
        return false;
    }
    fg_advance(device);
    put(device, field, number);
    return true;
}

static void add_up(FgDevice *device, uint64_t now) {
    FgDone *done = &device->done;
    uint64_t time = done->until && now > done->until ? now - done->until : 0;
    done->tensor += device->tensor_percent * time;
    done->memory += device->memory_percent * time;
    done->received += device->received_kib * time;
    done->sent += device->sent_kib * time;
    done->until = now > done->until ? now : done->until;
}

void fg_advance(FgDevice *device) {
    FgPlay *play = &device->play;
    uint64_t now = microseconds(), loop = play->loop_ms * UINT64_C(1000);
    if (play->count && loop && now > play->start + MOST_LOOPS * loop) {
        /* Nobody has looked for very long: the last turn is enough. */
        play->start += (now - play->start) / loop * loop - loop;
        play->next = 0;
    }
    while (play->count) {
        bool over = play->next == play->count;
        if (over && !loop) {
            break;
        }
        uint64_t due = play->start + (over ? loop : play->step[play->next].at_ms * UINT64_C(1000));
        if (due > now) {
            break;
        }
        if (over) {
            play->start += loop;
            play->next = 0;
            continue;
        }
        add_up(device, due);
        put(device, play->step[play->next].field, play->step[play->next].value);
        play->next++;
    }
    add_up(device, now);
}

static bool number_of(const char *text, uint64_t most, uint64_t *number) {
    char *end = NULL;
    unsigned long long found = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    *number = found;
    return end && !*end && found <= most;
}

/* Words with commas between them: "thermal,power-cap". */
static bool reasons_of(const char *text, uint64_t *bits) {
    *bits = 0;
    while (*text) {
        size_t length = strcspn(text, ","), r = 0;
        while (r < COUNT(REASONS) &&
               (strlen(REASONS[r].word) != length || strncmp(REASONS[r].word, text, length) != 0)) {
            r++;
        }
        if (r == COUNT(REASONS)) {
            return false;
        }
        *bits |= REASONS[r].bits;
        text += length + (text[length] == ',');
    }
    return true;
}

static bool meant(const char *name, const char *value, uint32_t *field, uint64_t *number) {
    if (!strcmp(name, "--throttle")) {
        *field = field_of("throttle");
        return reasons_of(value, number);
    } else if (!strcmp(name, "--xid")) {
        *field = XID;
        return number_of(value, UINT32_MAX, number);
    }
    for (size_t o = 0; o < COUNT(OPTIONS); o++) {
        if (!strcmp(OPTIONS[o].option, name)) {
            *field = field_of(OPTIONS[o].field);
            bool good = number_of(value, OPTIONS[o].most, number);
            *number *= OPTIONS[o].factor;
            return good;
        }
    }
    return false;
}

bool fg_option(FgDevice *device, FgPlay *play, uint32_t at_ms, const char *name,
               const char *value) {
    uint32_t field;
    uint64_t number;
    if (!meant(name, value, &field, &number)) {
        return false;
    }
    if (!play) {
        fg_advance(device);
        put(device, field, number);
        return true;
    }
    if (play->count == FG_STEPS) {
        return false;
    }
    play->step[play->count++] = (FgStep){.at_ms = at_ms, .field = field, .value = number};
    return true;
}

static bool seconds_of(const char *text, uint32_t *ms) {
    char *end = NULL;
    double seconds = isdigit((unsigned char)*text) ? strtod(text, &end) : -1;
    if (!end || *end || !(seconds >= 0 && seconds <= MOST_SECONDS)) {
        return false;
    }
    *ms = (uint32_t)(seconds * 1000 + 0.5);
    return true;
}

/* "60 --util 70 --tensor 40", or "90 loop" and "90 end", which are the last line. */
static bool read_step(char *line, FgPlay *play, uint32_t *last_ms, bool *over) {
    const char *space = " \t\r\n";
    char *rest, *word = strtok_r(line, space, &rest);
    uint32_t at_ms;
    if (!word || *word == '#') {
        return true;
    }
    if (*over || !seconds_of(word, &at_ms) || at_ms < *last_ms) {
        return false;
    }
    *last_ms = at_ms;
    while ((word = strtok_r(NULL, space, &rest))) {
        if (!strcmp(word, "loop") || !strcmp(word, "end")) {
            play->loop_ms = *word == 'l' ? at_ms : 0;
            *over = true;
            return at_ms > 0 && !strtok_r(NULL, space, &rest);
        }
        char *value = strtok_r(NULL, space, &rest);
        if (!value || !fg_option(NULL, play, at_ms, word, value)) {
            return false;
        }
    }
    return true;
}

int fg_read_schedule(FILE *file, FgPlay *play) {
    char line[1024];
    uint32_t last_ms = 0;
    bool over = false;
    *play = (FgPlay){0};
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (!read_step(line, play, &last_ms, &over)) {
            return number;
        }
    }
    return play->count ? 0 : -1;
}

void fg_begin(FgDevice *device, const FgPlay *play) {
    fg_advance(device);
    device->play = *play;
    device->play.start = microseconds();
    fg_advance(device);
}

uint32_t fg_busy(const FgSlot *slot) {
    uint64_t all = 0, ms = 0;
    for (uint32_t b = 0; b < slot->busy_count; b++) {
        all += slot->busy[b].ms;
    }
    uint64_t into = all ? (microseconds() - slot->busy_start) / 1000 % all : 0;
    for (uint32_t b = 0; b < slot->busy_count; b++) {
        ms += slot->busy[b].ms;
        if (into < ms || !all) {
            return slot->busy[b].percent;
        }
    }
    return 0;
}

uint32_t fg_device_busy(FgState *state, int device) {
    uint64_t sum = 0, set = state->shared->device[device].gpu_percent;
    for (uint32_t s = 0; s < state->shared->high_slot; s++) {
        const FgSlot *slot = &state->shared->slot[s];
        sum += slot->busy_count && fg_slot_bytes(slot, device) ? fg_busy(slot) : 0;
    }
    sum = sum < MOST_PERCENT ? sum : MOST_PERCENT;
    return (uint32_t)(sum > set ? sum : set);
}

bool fg_set_busy(FgSlot *slot, const char *text) {
    FgSlot made = {0};
    while (*text) {
        char part[32], *colon;
        size_t length = strcspn(text, ",");
        uint64_t percent;
        uint32_t ms = 0, b = made.busy_count;
        if (b == FG_BUSY_STEPS || length >= sizeof part) {
            return false;
        }
        memcpy(part, text, length);
        part[length] = '\0';
        text += length + (text[length] == ',');
        colon = strchr(part, ':');
        if (colon) {
            *colon = '\0';
        }
        if ((colon && (!seconds_of(part, &ms) || !ms)) || (!colon && (b || *text)) ||
            !number_of(colon ? colon + 1 : part, MOST_PERCENT, &percent)) {
            return false;
        }
        made.busy[b].ms = ms;
        made.busy[b].percent = (uint32_t)percent;
        made.busy_count++;
    }
    memcpy(slot->busy, made.busy, sizeof slot->busy);
    slot->busy_count = made.busy_count;
    slot->busy_start = microseconds();
    return made.busy_count > 0;
}
