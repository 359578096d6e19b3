/*
 * crowd PROCESSES KIB: that many processes start at once, and each takes one
 * piece of KIB. Prints how many got it, how many were refused with out of
 * memory, and how many ended otherwise; all hold what they have until everybody
 * has had a turn.
 */
#include "simple.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    _Atomic(int) got, refused;
};

/* Until the other end of the pipe is closed. */
static void wait_for(const int gate[2]) {
    char byte;
    close(gate[1]);
    while (read(gate[0], &byte, 1) > 0) {
    }
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 0, ended = 0, failed = 0;
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) << 10 : 0;
    int start[2], end[2];
    if (pipe(start) != 0 || pipe(end) != 0)
        return 2;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            return 2;
        if (child > 0)
            continue;
        CUdeviceptr pointer;
        close(end[1]);
        wait_for(start);
        use_device();
        CUresult answer = cuMemAlloc_v2(&pointer, bytes);
        if (answer == CUDA_SUCCESS)
            shared->got++;
        else if (answer == CUDA_ERROR_OUT_OF_MEMORY)
            shared->refused++;
        else
            _exit(2);
        wait_for(end);
        _exit(0);
    }
    close(start[1]);
    for (int i = 0; i < 6000 && shared->got + shared->refused + ended < processes; i++) {
        int status;
        while (waitpid(-1, &status, WNOHANG) > 0) {
            ended++; /* before its time */
            failed++;
        }
        usleep(10000);
    }
    printf("%d %d %d\n", shared->got, shared->refused, failed);
    close(end[1]);
    while (wait(NULL) > 0) {
    }
    return 0;
}
