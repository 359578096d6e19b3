/*
 * forks MODE: the parent takes 512 MiB and makes a child by fork, by a raw
 * clone system call, or not before a fork of which the parent has used nothing
 * (early). The child starts the driver anew and takes pieces of 128 MiB until
 * refused. Prints the child's pieces, then what the parent can still take after
 * the child is gone.
 */
#include "simple.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (128ul << 20)

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    CUdeviceptr pointers[64];
    if (strcmp(mode, "early") != 0) {
        use_device();
        for (int i = 0; i < 4; i++)
            MUST(cuMemAlloc_v2(&pointers[i], PIECE));
    }
    fflush(stdout);
    pid_t child =
        strcmp(mode, "clone") == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) {
        use_device();
        printf("%d ", take_all(PIECE, pointers, 64));
        fflush(stdout);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (strcmp(mode, "early") == 0)
        use_device();
    printf("%d\n", take_all(PIECE, pointers + 4, 60));
    return status != 0;
}
