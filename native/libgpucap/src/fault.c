#include "fault.h"

#ifdef GPUCAP_FAULTS
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fault_point(const char *name) {
    static _Atomic(int) times;
    const char *wanted = getenv("GPUCAP_FAULT");
    size_t length = strlen(name);
    if (!wanted || strncmp(wanted, name, length) != 0 || wanted[length] != ':')
        return;
    int turn = 0;
    const char *at = wanted + length + 1;
    for (; *at >= '0' && *at <= '9'; at++)
        turn = turn * 10 + (*at - '0');
    if (atomic_fetch_add(&times, 1) + 1 == turn)
        kill(getpid(), strcmp(at, ":stop") == 0 ? SIGSTOP : SIGKILL);
}
#endif
