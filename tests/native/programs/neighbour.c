/*
 * neighbour: takes its whole share, in every way, and gives it back, again and again until standard
 * input ends. Then it prints how often, and how often it was refused. Other failures of the device
 * are not its affair.
 */
#include "simple.h"

#include <poll.h>

enum { PIECE = 8 << 20, MICROSECONDS = 2000 };

static long rounds, refused;

static void judge(CUresult answer) {
    refused += answer == CUDA_ERROR_OUT_OF_MEMORY;
}

static void take_and_release(void) {
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr linear = 0, managed = 0;
    CUmemGenericAllocationHandle handle = 0;
    judge(cuMemAlloc_v2(&linear, PIECE));
    judge(cuMemAllocManaged(&managed, PIECE, 1));
    judge(cuMemCreate(&handle, PIECE, &properties, 0));
    if (linear)
        cuMemFree_v2(linear);
    if (managed)
        cuMemFree_v2(managed);
    if (handle)
        cuMemRelease(handle);
    rounds++;
}

static int input_ended(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char text;
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &text, 1) <= 0;
}

int main(void) {
    use_device();
    printf("ready\n");
    fflush(stdout);
    do {
        take_and_release();
        usleep(MICROSECONDS);
    } while (!input_ended());
    printf("%ld %ld\n", rounds, refused);
    return 0;
}
