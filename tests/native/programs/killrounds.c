/*
 * killrounds FOLDER ROUNDS POINT…: in each round a process of the container is
 * killed with SIGKILL at a fault point of the library, and then another one
 * must get the whole cap but for what a third process holds all the time, which
 * meanwhile allocates and frees and must never be disturbed.
 *
 * The cap is 1,026 MiB: eight pieces of 128 and a page for the bystander's small
 * change. Prints per point how often a process died there, and at the end "bad
 * N": the rounds after which memory was missing or a process got stuck.
 * GPUCAP_STATE_DIR is FOLDER/state.
 */
#include "simple.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (128ul << 20)

static int whole; /* pieces that there are: one less where the bystander holds it */

static _Atomic(long) *bystander_turns;

static bool starts_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Goes through every step of the protocol, some of them several times. */
static void work(void) {
    CUdeviceptr pointers[16], pooled;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    use_device();
    for (int i = 0; i < 3; i++) {
        int count = take_all(PIECE, pointers, 16);
        for (int j = 0; j < count; j++)
            cuMemFree_v2(pointers[j]);
        if (cuMemAllocAsync(&pooled, PIECE, NULL) == CUDA_SUCCESS) {
            cuMemFreeAsync(pooled, NULL);
            cuStreamSynchronize(NULL);
        }
        if (cuMemCreate(&handle, PIECE, &properties, 0) == CUDA_SUCCESS)
            cuMemRelease(handle);
    }
}

static int run(void (*function)(void), const char *fault) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (fault)
            setenv("GPUCAP_FAULT", fault, 1);
        alarm(120); /* it hangs */
        function();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

static bool was_killed(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void check_whole(void) {
    CUdeviceptr pointers[16];
    use_device();
    int count = take_all(PIECE, pointers, 16);
    if (count != whole)
        fprintf(stderr, "got %d pieces, not %d\n", count, whole);
    _exit(count == whole ? 0 : 1);
}

static void stand_by(void) {
    CUdeviceptr held, more;
    use_device();
    MUST(cuMemAlloc_v2(&held, PIECE));
    for (;; ++*bystander_turns) {
        if (cuMemAlloc_v2(&more, 4096) == CUDA_SUCCESS)
            cuMemFree_v2(more);
        usleep(500);
        /* Refused is fine (somebody has taken all); what is held must be freed and
         * taken again. */
    }
}

static bool moves_on(void) {
    long before = *bystander_turns;
    for (int i = 0; i < 2000 && *bystander_turns == before; i++)
        usleep(5000);
    return *bystander_turns != before;
}

static bool any_of(const char *point, const char *const *words) {
    while (*words && !starts_with(point, *words))
        words++;
    return *words != NULL;
}

/* One round; false: memory is missing or a process is stuck. */
static bool round_of(const char *folder, const char *point, int turn, bool *killed) {
    /* What the bystander would do first happens in a folder where it is not:
     * making the file, naming the device, finding that the lock's holder died. */
    static const char *const alone[] = {"make_", "device_", "recover", NULL};
    static const char *const anew[] = {"make_", "device_", NULL};
    bool apart = any_of(point, alone);
    turn = apart ? 1 : turn; /* these happen once */
    char fault[64], path[4200];
    snprintf(fault, sizeof fault, "%s:%d", point, turn);
    snprintf(path, sizeof path, "%s/%s", folder, apart ? "making" : "state");
    setenv("GPUCAP_STATE_DIR", path, 1);
    whole = apart ? 8 : 7;
    if (any_of(point, anew)) {
        strcat(path, "/ledger");
        unlink(path);
    }
    if (starts_with(point, "recover"))
        run(work, "locked:3");
    if (starts_with(point, "reap"))
        run(work, "kept:3");
    *killed = was_killed(run(work, fault));
    if (!*killed && turn > 1) {
        snprintf(fault, sizeof fault, "%s:1", point); /* a step that a process takes only once */
        *killed = was_killed(run(work, fault));
    }
    return run(check_whole, NULL) == 0 && moves_on();
}

int main(int argc, char **argv) {
    char state[4096];
    snprintf(state, sizeof state, "%s/state", argv[1]);
    setenv("GPUCAP_STATE_DIR", state, 1);
    int rounds = atoi(argv[2]), points = argc - 3, bad = 0;
    int *deaths = calloc((size_t)points, sizeof *deaths);
    bystander_turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t bystander = fork();
    if (bystander == 0)
        stand_by();
    if (!moves_on())
        return 2;
    for (int round = 0; round < rounds; round++) {
        int point = round % points, turn = 1 + round / points % 4;
        bool killed = false;
        if (!round_of(argv[1], argv[3 + point], turn, &killed)) {
            bad++;
            fprintf(stderr, "bad after %s:%d\n", argv[3 + point], turn);
        }
        deaths[point] += killed;
    }
    for (int i = 0; i < points; i++)
        printf("%s %d\n", argv[3 + i], deaths[i]);
    printf("bad %d\n", bad);
    kill(bystander, SIGKILL);
    return 0;
}
