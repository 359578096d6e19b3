/*
 * Prints what the driver answers to calls that are wrong: NULL arguments, no
 * cuInit, no context, pointers and handles of nobody. The output with the
 * library must be the output without it.
 */
#include "simple.h"

#include <string.h>
#include <unistd.h>

#define ASK(call) printf("%-90s %d\n", #call, (call))

static void without_arguments(void) {
    size_t some = 0;
    CUdeviceptr pointer = 0;
    CUDA_ARRAY3D_DESCRIPTOR nothing;
    memset(&nothing, 0, sizeof nothing);
    ASK(cuMemAlloc_v2(NULL, 1 << 20));
    ASK(cuMemAlloc_v2(&pointer, 0));
    ASK(cuMemAlloc(NULL, 1 << 20));
    ASK(cuMemAllocPitch_v2(NULL, &some, 1024, 1024, 4));
    ASK(cuMemAllocPitch_v2(&pointer, NULL, 1024, 1024, 4));
    ASK(cuMemAllocPitch_v2(&pointer, &some, 0, 1024, 4));
    ASK(cuMemAllocPitch_v2(&pointer, &some, 1024, 1024, 3));
    ASK(cuMemAllocManaged(NULL, 1 << 20, 1));
    ASK(cuMemAllocManaged(&pointer, 1 << 20, 77));
    ASK(cuMemAllocAsync(NULL, 1 << 20, NULL));
    ASK(cuMemAllocAsync(&pointer, 0, NULL));
    ASK(cuMemAllocFromPoolAsync(&pointer, 1 << 20, NULL, NULL));
    ASK(cuMemPoolCreate(NULL, NULL));
    ASK(cuMemPoolDestroy(NULL));
    ASK(cuMemPoolTrimTo(NULL, 0));
    ASK(cuMemPoolSetAttribute(NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL));
    ASK(cuMemCreate(NULL, 1 << 21, NULL, 0));
    ASK(cuMemMap(0, 1 << 21, 0, 0, 0));
    ASK(cuMemUnmap(0, 1 << 21));
    ASK(cuMemRelease(0));
    ASK(cuMemRetainAllocationHandle(NULL, NULL));
    ASK(cuArrayCreate_v2(NULL, NULL));
    ASK(cuArray3DCreate_v2(NULL, NULL));
    ASK(cuArray3DCreate_v2((CUarray *)&pointer, &nothing));
    ASK(cuMipmappedArrayCreate(NULL, NULL, 1));
    ASK(cuArrayDestroy(NULL));
    ASK(cuMipmappedArrayDestroy(NULL));
    ASK(cuGraphAddMemAllocNode(NULL, NULL, NULL, 0, NULL));
    ASK(cuGraphAddNode(NULL, NULL, NULL, 0, NULL));
    ASK(cuGraphInstantiateWithFlags(NULL, NULL, 0));
    ASK(cuGraphInstantiateWithParams(NULL, NULL, NULL));
    ASK(cuGraphLaunch(NULL, NULL));
    ASK(cuGraphExecDestroy(NULL));
    ASK(cuDeviceGraphMemTrim(77));
    ASK(cuDeviceGraphMemTrim(-1));
    ASK(cuDevicePrimaryCtxRetain(NULL, 0));
    ASK(cuDevicePrimaryCtxRelease_v2(77));
    ASK(cuDevicePrimaryCtxReset_v2(-1));
    ASK(cuCtxCreate_v2(NULL, 0, 0));
    ASK(cuCtxCreate_v2((CUcontext *)&pointer, 0, 77));
    ASK(cuCtxDestroy_v2(NULL));
    ASK(cuModuleLoadData(NULL, NULL));
    ASK(cuLibraryLoadData(NULL, NULL, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuMemGetInfo_v2(NULL, NULL));
    ASK(cuDeviceTotalMem_v2(NULL, 0));
    ASK(cuDeviceTotalMem_v2(&some, 77));
    ASK(cuGetProcAddress(NULL, NULL, 12000, 0));
    ASK(cuGetProcAddress("cuMemAlloc", (void **)&pointer, 99000, 0));
    ASK(cuGetProcAddress_v2("cuNothing", (void **)&pointer, 12000, 0, NULL));
    ASK(cuGetProcAddress_v2("cuMemAlloc", (void **)&pointer, 12000, 3, NULL));
}

static void not_ours(void) {
    CUdeviceptr pointer = 0;
    ASK(cuMemFree_v2(0));
    ASK(cuMemFree_v2(0xdead0000));
    ASK(cuMemFree(0xdead0000));
    ASK(cuMemFreeAsync(0, NULL));
    ASK(cuMemFreeAsync(0xdead0000, NULL));
    ASK(cuMemRelease(0xdead0000));
    ASK(cuMemUnmap(0xdead0000, 1 << 21));
    ASK(cuMemAlloc_v2(&pointer, 1 << 20));
    ASK(cuMemFree_v2(pointer));
    ASK(cuMemFree_v2(pointer)); /* twice */
    ASK(cuMemFree_v2(pointer + 4096));
}

int main(void) {
    CUcontext context;
    printf("before cuInit\n");
    without_arguments();
    not_ours();
    printf("without a context\n");
    MUST(cuInit(0));
    without_arguments();
    not_ours();
    printf("with a context\n");
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    without_arguments();
    not_ours();
    return 0;
}
