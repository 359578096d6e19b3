/*
 * crowd PROCESSES KIB: that many processes start at once, and each takes one piece of KIB. Prints how
 * many got it, how many were refused with out of memory, and how many ended otherwise; all hold what
 * they have until everybody has had a turn.
 */
#include "simple.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    _Atomic(int) go, got, refused;
};

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 0, ended = 0, failed = 0;
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) << 10 : 0;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            return 2;
        if (child > 0)
            continue;
        CUdeviceptr pointer;
        while (!shared->go)
            usleep(1000);
        use_device();
        CUresult answer = cuMemAlloc_v2(&pointer, bytes);
        if (answer == CUDA_SUCCESS)
            shared->got++;
        else if (answer == CUDA_ERROR_OUT_OF_MEMORY)
            shared->refused++;
        else
            _exit(2);
        while (shared->go == 1)
            usleep(20000);
        _exit(0);
    }
    shared->go = 1;
    for (int i = 0; i < 6000 && shared->got + shared->refused + ended < processes; i++) {
        int status;
        while (waitpid(-1, &status, WNOHANG) > 0) {
            ended++; /* before its time */
            failed++;
        }
        usleep(10000);
    }
    printf("%d %d %d\n", shared->got, shared->refused, failed);
    shared->go = 2;
    while (wait(NULL) > 0) {
    }
    return 0;
}
