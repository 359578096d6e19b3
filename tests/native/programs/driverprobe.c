/*
 * driverprobe RESOLUTION ROW MIB [ACTION]: takes pieces of MIB by the row's
 * functions until the driver refuses, and prints `pieces answer free total`
 * (bytes, as seen inside; of the first device).
 *
 * RESOLUTION: linked | dlopen | procaddress: how the functions are found.
 * ACTION, one of:
 *   hold: then keeps it all until standard input ends
 *   cycle: takes one piece and gives it back, 64 times, before that; a refusal
 * ends it with 1 once: takes one piece only steps: takes one piece now and one
 * for each line that comes in, and prints how many it has context: takes
 * nothing, prints after the context was made
 */
#include "rows.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *driver;

static void *linked(const char *symbol, const char *name, int version, unsigned long long flags) {
    (void)name, (void)version, (void)flags;
#define CUDA_FUNCTION(of, name_, since, stream, parameters)                                        \
    if (strcmp(symbol, #of) == 0)                                                                  \
        return (void *)of;
#define CUDA_ALIAS(of, name_, since, stream)
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS
    return NULL;
}

static void *by_dlsym(const char *symbol, const char *name, int version, unsigned long long flags) {
    (void)name, (void)version, (void)flags;
    return dlsym(driver, symbol);
}

/* As the static CUDA runtime does it: one dlsym, then names with versions and
 * flags. */
static void *by_procaddress(const char *symbol, const char *name, int version,
                            unsigned long long flags) {
    static __typeof__(&cuGetProcAddress_v2) get;
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    (void)symbol;
    if (!get)
        get = (__typeof__(get))dlsym(driver, "cuGetProcAddress_v2");
    return get && get(name, &found, version, flags, &status) == CUDA_SUCCESS ? found : NULL;
}

static void fail(const char *what, int answer) {
    fprintf(stderr, "driverprobe: %s: %d\n", what, answer);
    exit(2);
}

static bool is(const char *text, const char *word) {
    return text && strcmp(text, word) == 0;
}

static void start(const char *resolution) {
    if (!is(resolution, "linked") && !(driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)))
        fail(dlerror(), 0);
    if (!resolve_all(is(resolution, "linked")   ? linked
                     : is(resolution, "dlopen") ? by_dlsym
                                                : by_procaddress))
        fail("functions are missing", 0);
    CUresult answer = p_cuInit(0);
    if (answer != CUDA_SUCCESS)
        fail("cuInit", answer);
}

static void cycle(const struct row *row, size_t bytes) {
    for (int i = 0; i < 64; i++) {
        CUresult taken = row->take(bytes), dropped = taken ? taken : row->drop();
        if (dropped != CUDA_SUCCESS) {
            fprintf(stderr, "driverprobe: round %d: taken %d, dropped %d\n", i, taken, dropped);
            exit(1);
        }
    }
}

static void step(const struct row *row, size_t bytes) {
    char line[16];
    for (int pieces = 0;;) {
        pieces += row->take(bytes) == CUDA_SUCCESS;
        printf("%d\n", pieces);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            exit(0);
    }
}

int main(int argc, char **argv) {
    if (argc < 4 || !find_row(argv[2]))
        fail("usage: driverprobe RESOLUTION ROW MIB [ACTION]", argc);
    const char *action = argc > 4 ? argv[4] : "";
    size_t bytes = strtoull(argv[3], NULL, 10) << 20, free = 0, total = 0;
    CUcontext context;
    int answer = CUDA_SUCCESS;
    long pieces = 0;
    start(argv[1]);
    /* Rows that make contexts begin without one. */
    bool contexts = strncmp(argv[2], "context", 7) == 0;
    if (!contexts && (answer = p_cuDevicePrimaryCtxRetain(&context, 0)) != CUDA_SUCCESS)
        fail("cuDevicePrimaryCtxRetain", answer);
    if (!contexts)
        p_cuCtxSetCurrent(context);
    if (is(action, "steps"))
        step(find_row(argv[2]), bytes);
    if (is(action, "cycle"))
        cycle(find_row(argv[2]), bytes);
    if (!is(action, "context"))
        pieces = take_until_refused(argv[2], bytes, is(action, "once") ? 1 : 8192, &answer);
    p_cuMemGetInfo_v2(&free, &total);
    printf("%ld %d %zu %zu\n", pieces, answer, free, total);
    fflush(stdout);
    if (is(action, "hold")) {
        char byte;
        while (read(0, &byte, 1) > 0) {
        }
    }
    return 0;
}
