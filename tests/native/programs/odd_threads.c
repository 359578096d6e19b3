/*
 * odd_threads cancel: threads are cancelled while the library reads the limit
 * file anew; afterwards this one takes pieces of 128 MiB.
 * odd_threads stack: a thread with the least stack that there is takes them,
 * and makes the ledger before. Prints how many there were.
 */
#include "simple.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#define PIECE (128ul << 20)

static CUcontext context;
static size_t total;

/* Its end is asked for before the call: it comes at the first place that allows
 * one, and reading a file does. */
static void *work(void *limit) {
    MUST(cuCtxSetCurrent(context));
    FILE *file = fopen(limit, "w");
    fputs("1024\n", file);
    fclose(file);
    usleep(150000); /* the library looks at the file every 100 ms */
    pthread_cancel(pthread_self());
    cuDeviceTotalMem_v2(&total, 0);
    for (;;)
        pthread_testcancel();
}

static void *take(void *count) {
    CUdeviceptr pointers[64];
    MUST(cuCtxSetCurrent(context));
    *(int *)count = take_all(PIECE, pointers, 64);
    return NULL;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    int count = -1;
    pthread_t thread;
    pthread_attr_t attributes;
    alarm(120); /* it hangs */
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    pthread_attr_init(&attributes);
    if (strcmp(mode, "stack") == 0)
        pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    for (int i = 0; i < 3 && strcmp(mode, "cancel") == 0; i++) {
        if (pthread_create(&thread, NULL, work, getenv("GPUCAP_LIMIT_FILE")) != 0)
            return 3;
        pthread_join(thread, NULL);
    }
    if (pthread_create(&thread, &attributes, take, &count) != 0)
        return 3;
    pthread_join(thread, NULL);
    printf("%d\n", count);
    return 0;
}
