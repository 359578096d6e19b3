#include "commands.h"

#include "measure.h"
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *symbol;
    void *const *pointer;
} functions[] = {
#define CUDA_FUNCTION(symbol, name, since, stream, parameters)                                     \
    {#symbol, (void *const *)&p_##symbol},
#define CUDA_ALIAS(symbol, name, since, stream)
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS
};

static int has(const char *symbol) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].symbol, symbol) == 0)
            return *functions[i].pointer != NULL;
    return 0;
}

static CUresult context(void) {
    CUcontext made;
    CUresult result = p_cuDevicePrimaryCtxRetain(&made, 0);
    return result == CUDA_SUCCESS ? p_cuCtxSetCurrent(made) : result;
}

static void see(void) {
    size_t free = 0, total = 0, device_total = 0;
    struct nvml_view nvml = nvml_view();
    p_cuMemGetInfo_v2(&free, &total);
    p_cuDeviceTotalMem_v2(&device_total, 0);
    printf("%zu %zu %zu %llu %llu %llu\n", free, total, device_total, nvml.total, nvml.total_v2,
           nvml.free);
}

static void drop(const struct row *row, long count) {
    int answer = CUDA_SUCCESS;
    long dropped = 0;
    while (dropped < count && (answer = row->drop()) == CUDA_SUCCESS)
        dropped++;
    printf("%ld %d\n", dropped, answer);
}

/* A pointer that never was, and one that was given back already. Pinned host
 * memory is no business of the cap; it must come and go as always. */
static void unknown(void) {
    CUdeviceptr twice = 0;
    void *host = NULL;
    p_cuMemAlloc_v2(&twice, 1 << 20);
    int once = p_cuMemFree_v2(twice);
    int pinned = p_cuMemHostAlloc(&host, 1 << 20, 0);
    printf("%d %d %d %d %d %d\n", once, p_cuMemFree_v2(twice), p_cuMemFree_v2(0xdead0000),
           p_cuMemFreeAsync ? p_cuMemFreeAsync(0xdead0000, NULL) : 0, pinned,
           pinned == CUDA_SUCCESS ? p_cuMemFreeHost(host) : 0);
}

static void churn(const struct row *row, size_t bytes) {
    printf("0\n");
    fflush(stdout);
    for (;;)
        if (row->take(bytes) == CUDA_SUCCESS)
            row->drop();
}

static void fork_child(void) {
    pid_t child = fork();
    while (child == 0)
        pause();
    printf("%d\n", (int)child);
}

static void obey(const char *word, const char *name, size_t bytes, long number) {
    const struct row *row = find_row(name);
    int answer = CUDA_ERROR_NOT_FOUND;
    if (strcmp(word, "has") == 0) {
        printf("%d\n", has(name));
    } else if (strcmp(word, "start") == 0) {
        printf("%d\n", p_cuInit(0));
    } else if (strcmp(word, "context") == 0) {
        printf("%d\n", context());
    } else if (strcmp(word, "see") == 0) {
        see();
    } else if (strcmp(word, "launch") == 0) {
        printf("%.1f\n", launch_nanoseconds(strtol(name, NULL, 10)));
    } else if (strcmp(word, "fork") == 0) {
        fork_child();
    } else if (strcmp(word, "unknown") == 0) {
        unknown();
    } else if (row && strcmp(word, "take") == 0) {
        long pieces = take_until_refused(name, bytes, number, &answer);
        printf("%ld %d\n", pieces, answer);
    } else if (row && strcmp(word, "drop") == 0) {
        drop(row, (long)bytes);
    } else if (row && strcmp(word, "cost") == 0) {
        double cost = pair_nanoseconds(row, bytes, number, &answer);
        printf("%.1f %d\n", cost, answer);
    } else if (row && strcmp(word, "refuse") == 0) {
        double cost = refusal_nanoseconds(row, bytes, number, &answer);
        printf("%.1f %d\n", cost, answer);
    } else if (row && strcmp(word, "churn") == 0) {
        churn(row, bytes);
    } else {
        printf("? %s %s\n", word, name);
    }
    fflush(stdout);
}

void serve(void) {
    char line[256], word[32], name[64];
    while (fgets(line, sizeof line, stdin)) {
        size_t bytes = 0;
        long number = 0;
        name[0] = 0;
        if (sscanf(line, "%31s %63s %zu %ld", word, name, &bytes, &number) >= 1)
            obey(word, name, bytes, number);
    }
}
