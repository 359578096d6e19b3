/* NVML's view of a device's memory: what nvidia-smi and most monitors show inside the container. */
#include "charge.h"
#include "limit.h"
#include "views.h"

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The 16 bytes of "GPU-1ec7…" or "MIG-…": 32 hexadecimal digits with dashes among them. */
static bool parse_uuid(const char *text, uint8_t uuid[16]) {
    int count = 0;
    for (text += 4; *text && count < 32; text++) {
        int value = digit(*text);
        if (*text == '-')
            continue;
        if (value < 0)
            return false;
        uuid[count / 2] = (uint8_t)(count % 2 ? uuid[count / 2] << 4 | value : value);
        count++;
    }
    return count == 32;
}

static int device_of(void *handle) {
    char text[96] = "";
    uint8_t uuid[16];
    if (CALL_DRIVER(nvmlDeviceGetUUID, handle, text, sizeof text) != 0 || !text[0] || !text[1] ||
        !text[2] || !parse_uuid(text, uuid))
        return -1;
    return account_device(uuid);
}

/* Without the memory that the driver keeps for itself: the cap is about what programs can use. */
static void shrink(int device, unsigned long long *total, unsigned long long *free,
                   unsigned long long *used) {
    uint64_t held = account_held(device);
    *total = views_total(*total);
    *free = views_free(device, *free);
    *used = held < *total ? held : *total;
}

int nvmlDeviceGetMemoryInfo(void *handle, struct nvml_memory *memory) {
    ENTER(nvmlDeviceGetMemoryInfo, handle, memory);
    int answer = CALL_DRIVER(nvmlDeviceGetMemoryInfo, handle, memory);
    if (answer != 0 || limit_bytes() == LIMIT_NONE)
        return answer;
    int device = device_of(handle);
    if (device >= 0)
        shrink(device, &memory->total, &memory->free, &memory->used);
    return answer;
}

int nvmlDeviceGetMemoryInfo_v2(void *handle, struct nvml_memory_v2 *memory) {
    ENTER(nvmlDeviceGetMemoryInfo_v2, handle, memory);
    int answer = CALL_DRIVER(nvmlDeviceGetMemoryInfo_v2, handle, memory);
    if (answer != 0 || limit_bytes() == LIMIT_NONE)
        return answer;
    int device = device_of(handle);
    if (device >= 0) {
        shrink(device, &memory->total, &memory->free, &memory->used);
        memory->reserved = 0;
    }
    return answer;
}
