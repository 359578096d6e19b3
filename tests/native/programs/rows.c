#include "rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CUDA_FUNCTION(symbol, name, since, stream, parameters) __typeof__(&symbol) p_##symbol;
#define CUDA_ALIAS(symbol, name, since, stream)
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS

enum { ANY = 0, LEGACY = 1, PER_THREAD = 2, MOST = 8192 };

/* What was taken last, by whichever row runs. */
static union {
    CUdeviceptr pointer;
    CUdeviceptr_v1 pointer_v1;
    CUmemGenericAllocationHandle handle;
    CUarray array;
    CUmipmappedArray mipmap;
    CUcontext context;
    int before, descriptor;
    CUmodule module;
    CUlibrary library;
    size_t heap;
    struct {
        CUgraph graph;
        CUgraphExec exec;
        CUdeviceptr pointer;
    } graph;
} taken[MOST];
static int count;

#define TAKEN taken[count]
#define KEEP(call)                                                                                 \
    do {                                                                                           \
        CUresult outcome = (call);                                                                 \
        count += outcome == CUDA_SUCCESS;                                                          \
        return outcome;                                                                            \
    } while (0)
#define DROP(call)                                                                                 \
    do {                                                                                           \
        count--;                                                                                   \
        return (call);                                                                             \
    } while (0)

static CUresult take_alloc(size_t bytes) {
    KEEP(p_cuMemAlloc_v2(&TAKEN.pointer, bytes));
}
static CUresult drop_alloc(void) {
    DROP(p_cuMemFree_v2(TAKEN.pointer));
}
static CUresult take_alloc_v1(size_t bytes) {
    KEEP(p_cuMemAlloc(&TAKEN.pointer_v1, (unsigned)bytes));
}
static CUresult drop_alloc_v1(void) {
    DROP(p_cuMemFree(TAKEN.pointer_v1));
}
static CUresult take_pitch(size_t bytes) {
    size_t pitch;
    KEEP(p_cuMemAllocPitch_v2(&TAKEN.pointer, &pitch, bytes / 1024, 1024, 4));
}
static CUresult take_pitch_v1(size_t bytes) {
    unsigned int pitch;
    KEEP(p_cuMemAllocPitch(&TAKEN.pointer_v1, &pitch, (unsigned)(bytes / 1024), 1024, 4));
}
static CUresult take_managed(size_t bytes) {
    KEEP(p_cuMemAllocManaged(&TAKEN.pointer, bytes, 1));
}

/* In allocations of half a mebibyte, which share pages. */
enum { SMALL = 1 << 19, MOST_SMALL = 1 << 18 };
static CUdeviceptr small[MOST_SMALL];
static int small_count;
static CUresult drop_some_small(int down_to) {
    CUresult result = CUDA_SUCCESS;
    while (small_count > down_to && result == CUDA_SUCCESS)
        result = p_cuMemFree_v2(small[--small_count]);
    return result;
}
static CUresult take_small(size_t bytes) {
    CUresult result = CUDA_SUCCESS;
    int before = small_count;
    for (size_t got = 0; got < bytes && result == CUDA_SUCCESS; got += SMALL) {
        result = small_count < MOST_SMALL ? p_cuMemAlloc_v2(&small[small_count], SMALL)
                                          : CUDA_ERROR_UNKNOWN;
        small_count += result == CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS)
        drop_some_small(before);
    TAKEN.before = before;
    KEEP(result);
}
static CUresult drop_small(void) {
    DROP(drop_some_small(TAKEN.before));
}

static CUresult take_async(size_t bytes) {
    KEEP(p_cuMemAllocAsync(&TAKEN.pointer, bytes, NULL));
}
static CUresult drop_async(void) {
    count--;
    CUresult result = p_cuMemFreeAsync(TAKEN.pointer, NULL);
    return result == CUDA_SUCCESS ? p_cuStreamSynchronize(NULL) : result;
}
static CUresult take_async_ptsz(size_t bytes) {
    KEEP(p_cuMemAllocAsync_ptsz(&TAKEN.pointer, bytes, NULL));
}
static CUresult drop_async_ptsz(void) {
    count--;
    CUresult result = p_cuMemFreeAsync_ptsz(TAKEN.pointer, NULL);
    return result == CUDA_SUCCESS ? p_cuStreamSynchronize_ptsz(NULL) : result;
}
/* An allocation in a stream of its own, not the default one. */
static CUresult take_async_stream(size_t bytes) {
    static CUstream stream;
    if (!stream && p_cuStreamCreate(&stream, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    KEEP(p_cuMemAllocAsync(&TAKEN.pointer, bytes, stream));
}

static CUmemoryPool own_pool(void) {
    static CUmemoryPool pool;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    if (!pool)
        p_cuMemPoolCreate(&pool, &properties);
    return pool;
}
static CUresult take_pool(size_t bytes) {
    KEEP(p_cuMemAllocFromPoolAsync(&TAKEN.pointer, bytes, own_pool(), NULL));
}
static CUresult take_pool_ptsz(size_t bytes) {
    KEEP(p_cuMemAllocFromPoolAsync_ptsz(&TAKEN.pointer, bytes, own_pool(), NULL));
}

/* From a pool of managed memory that prefers the machine. */
static CUresult take_pool_managed(size_t bytes) {
    static CUmemoryPool pool;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
                                 .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    CUresult result = pool ? CUDA_SUCCESS : p_cuMemPoolCreate(&pool, &properties);
    if (result != CUDA_SUCCESS)
        return result;
    KEEP(p_cuMemAllocFromPoolAsync(&TAKEN.pointer, bytes, pool, NULL));
}

static CUresult take_vmm(size_t bytes) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    KEEP(p_cuMemCreate(&TAKEN.handle, bytes, &properties, 0));
}
static CUresult drop_vmm(void) {
    DROP(p_cuMemRelease(TAKEN.handle));
}
/* Bound to a multicast object, which alone is kept. */
static CUresult take_vmm_bound(size_t bytes) {
    CUmemGenericAllocationHandle handle;
    CUmulticastObjectProp object = {.numDevices = 1, .size = bytes};
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUresult result = p_cuMemCreate(&handle, bytes, &properties, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = p_cuMulticastCreate(&TAKEN.handle, &object);
    if (result == CUDA_SUCCESS)
        result = p_cuMulticastAddDevice(TAKEN.handle, 0);
    if (result == CUDA_SUCCESS)
        result = p_cuMulticastBindMem(TAKEN.handle, 0, handle, 0, bytes, 0);
    p_cuMemRelease(handle);
    KEEP(result);
}
/* Mapped, and its handle released at once: the memory lives until it is
 * unmapped. */
static CUresult take_vmm_mapped(size_t bytes) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUresult result = p_cuMemCreate(&handle, bytes, &properties, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = p_cuMemAddressReserve(&TAKEN.pointer, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS)
        result = p_cuMemMap(TAKEN.pointer, bytes, 0, handle, 0);
    p_cuMemRelease(handle);
    KEEP(result);
}
static size_t vmm_bytes;
static CUresult take_vmm_mapped_noted(size_t bytes) {
    vmm_bytes = bytes;
    return take_vmm_mapped(bytes);
}
static CUresult drop_vmm_mapped(void) {
    count--;
    CUresult result = p_cuMemUnmap(TAKEN.pointer, vmm_bytes);
    return result == CUDA_SUCCESS ? p_cuMemAddressFree(TAKEN.pointer, vmm_bytes) : result;
}

/* Exported to a descriptor, and its handle released: the memory lives until that is closed. */
static CUresult export(size_t bytes, int *descriptor) {
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUresult result = p_cuMemCreate(&handle, bytes, &properties, 0);
    if (result != CUDA_SUCCESS)
        return result;
    result = p_cuMemExportToShareableHandle(descriptor, handle,
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    p_cuMemRelease(handle);
    return result;
}
static CUresult take_vmm_exported(size_t bytes) {
    KEEP(export(bytes, &TAKEN.descriptor));
}
static CUresult drop_vmm_exported(void) {
    DROP(close(TAKEN.descriptor) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM);
}

/* And the same where only a duplicate of it is left, or what was imported by it. */
static CUresult take_vmm_duplicated(size_t bytes) {
    int descriptor;
    CUresult result = export(bytes, &descriptor);
    if (result != CUDA_SUCCESS)
        return result;
    TAKEN.descriptor = dup(descriptor);
    close(descriptor);
    KEEP(TAKEN.descriptor < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS);
}
static CUresult take_vmm_imported(size_t bytes) {
    int descriptor;
    CUresult result = export(bytes, &descriptor);
    if (result != CUDA_SUCCESS)
        return result;
    result = p_cuMemImportFromShareableHandle(&TAKEN.handle, (void *)(intptr_t)descriptor,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(descriptor);
    KEEP(result);
}

/* A module with a variable of so many bytes, for the newest GPUs that the driver compiles for. */
static CUresult load(size_t bytes, bool library) {
    static const int targets[] = {75, 70, 60, 52, 35};
    char text[160];
    CUresult result = CUDA_ERROR_UNKNOWN;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        snprintf(text, sizeof text,
                 ".version 6.3\n.target sm_%d\n.address_size 64\n"
                 ".visible .global .align 4 .b8 table[%zu];\n",
                 targets[i], bytes);
        result = library ? p_cuLibraryLoadData(&TAKEN.library, text, NULL, NULL, 0, NULL, NULL, 0)
                         : p_cuModuleLoadData(&TAKEN.module, text);
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY)
            break;
    }
    KEEP(result);
}
static CUresult take_module(size_t bytes) {
    return load(bytes, false);
}
static CUresult drop_module(void) {
    DROP(p_cuModuleUnload(TAKEN.module));
}
static CUresult take_library(size_t bytes) {
    return load(bytes, true);
}
static CUresult drop_library(void) {
    DROP(p_cuLibraryUnload(TAKEN.library));
}

/* What kernels may allocate by themselves. */
static CUresult take_heap(size_t bytes) {
    CUresult result = p_cuCtxGetLimit(&TAKEN.heap, CU_LIMIT_MALLOC_HEAP_SIZE);
    if (result != CUDA_SUCCESS)
        return result;
    KEEP(p_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, TAKEN.heap + bytes));
}
static CUresult drop_heap(void) {
    DROP(p_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, TAKEN.heap));
}

static CUresult take_array(size_t bytes) {
    CUDA_ARRAY_DESCRIPTOR shape = {bytes / 4096, 1024, CU_AD_FORMAT_FLOAT, 1};
    KEEP(p_cuArrayCreate_v2(&TAKEN.array, &shape));
}
static CUresult take_array_v1(size_t bytes) {
    CUDA_ARRAY_DESCRIPTOR_v1 shape = {(unsigned)(bytes / 4096), 1024, CU_AD_FORMAT_FLOAT, 1};
    KEEP(p_cuArrayCreate(&TAKEN.array, &shape));
}
static CUresult take_array3d(size_t bytes) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {bytes / 65536, 256, 64, CU_AD_FORMAT_HALF, 2, 0};
    KEEP(p_cuArray3DCreate_v2(&TAKEN.array, &shape));
}
static CUresult take_array3d_v1(size_t bytes) {
    CUDA_ARRAY3D_DESCRIPTOR_v1 shape = {(unsigned)(bytes / 65536), 256, 64,
                                        CU_AD_FORMAT_HALF,         2,   0};
    KEEP(p_cuArray3DCreate(&TAKEN.array, &shape));
}
static CUresult drop_array(void) {
    DROP(p_cuArrayDestroy(TAKEN.array));
}
static CUresult take_mipmap(size_t bytes) {
    CUDA_ARRAY3D_DESCRIPTOR shape = {bytes / 4096, 1024, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    KEEP(p_cuMipmappedArrayCreate(&TAKEN.mipmap, &shape, 1));
}
static CUresult drop_mipmap(void) {
    DROP(p_cuMipmappedArrayDestroy(TAKEN.mipmap));
}

/* A graph with one allocation that outlives its launch. */
static CUresult graph_of(size_t bytes) {
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
        .bytesize = bytes};
    CUresult result = p_cuGraphCreate(&TAKEN.graph.graph, 0);
    if (result == CUDA_SUCCESS)
        result = p_cuGraphAddMemAllocNode(&node, TAKEN.graph.graph, NULL, 0, &params);
    TAKEN.graph.pointer = params.dptr;
    return result;
}
static CUresult graph_by_node(size_t bytes) {
    CUgraphNode node;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    params.u.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.u.alloc.bytesize = bytes;
    CUresult result = p_cuGraphCreate(&TAKEN.graph.graph, 0);
    if (result == CUDA_SUCCESS)
        result = p_cuGraphAddNode(&node, TAKEN.graph.graph, NULL, 0, &params);
    TAKEN.graph.pointer = params.u.alloc.dptr;
    return result;
}
/* In a graph that is moved into another one. */
static CUresult graph_inner(size_t bytes) {
    CUgraphNode node;
    CUresult result = graph_of(bytes);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    params.u.child.graph = TAKEN.graph.graph;
    params.u.child.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (result == CUDA_SUCCESS)
        result = p_cuGraphCreate(&TAKEN.graph.graph, 0);
    return result == CUDA_SUCCESS ? p_cuGraphAddNode(&node, TAKEN.graph.graph, NULL, 0, &params)
                                  : result;
}
static CUresult graph_captured(size_t bytes) {
    static CUstream stream;
    if (!stream && p_cuStreamCreate(&stream, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_UNKNOWN;
    CUresult result = p_cuStreamBeginCapture_v2(stream, 0);
    if (result != CUDA_SUCCESS)
        return result;
    CUresult allocated = p_cuMemAllocAsync(&TAKEN.graph.pointer, bytes, stream);
    result = p_cuStreamEndCapture(stream, &TAKEN.graph.graph);
    return allocated == CUDA_SUCCESS ? result : allocated;
}
#define TAKE_GRAPH(row, make, instantiate, launch)                                                 \
    static CUresult row(size_t bytes) {                                                            \
        CUresult result = make(bytes);                                                             \
        if (result == CUDA_SUCCESS)                                                                \
            result = instantiate;                                                                  \
        if (result == CUDA_SUCCESS)                                                                \
            result = launch(TAKEN.graph.exec, NULL);                                               \
        KEEP(result);                                                                              \
    }
#define EXEC &TAKEN.graph.exec, TAKEN.graph.graph
static CUDA_GRAPH_INSTANTIATE_PARAMS params;
TAKE_GRAPH(take_graph, graph_of, p_cuGraphInstantiateWithFlags(EXEC, 0), p_cuGraphLaunch)
TAKE_GRAPH(take_graph_v1, graph_of, p_cuGraphInstantiate(EXEC, NULL, NULL, 0), p_cuGraphLaunch)
TAKE_GRAPH(take_graph_v2, graph_of, p_cuGraphInstantiate_v2(EXEC, NULL, NULL, 0), p_cuGraphLaunch)
TAKE_GRAPH(take_graph_params, graph_of, p_cuGraphInstantiateWithParams(EXEC, &params),
           p_cuGraphLaunch)
TAKE_GRAPH(take_graph_ptsz, graph_of, p_cuGraphInstantiateWithParams_ptsz(EXEC, &params),
           p_cuGraphLaunch_ptsz)
TAKE_GRAPH(take_graph_node, graph_by_node, p_cuGraphInstantiateWithFlags(EXEC, 0), p_cuGraphLaunch)
TAKE_GRAPH(take_graph_inner, graph_inner, p_cuGraphInstantiateWithFlags(EXEC, 0), p_cuGraphLaunch)
TAKE_GRAPH(take_graph_captured, graph_captured, p_cuGraphInstantiateWithFlags(EXEC, 0),
           p_cuGraphLaunch)
static CUresult drop_graph(void) {
    count--;
    CUresult result = p_cuMemFree_v2(TAKEN.graph.pointer);
    if (result == CUDA_SUCCESS)
        result = p_cuGraphExecDestroy(TAKEN.graph.exec);
    if (result == CUDA_SUCCESS)
        result = p_cuGraphDestroy(TAKEN.graph.graph);
    return result == CUDA_SUCCESS ? p_cuDeviceGraphMemTrim(0) : result;
}

/* Contexts have no size of their own: `bytes` is what the test says one is
 * charged. */
static CUresult take_context(size_t bytes) {
    (void)bytes;
    KEEP(p_cuCtxCreate_v2(&TAKEN.context, 0, 0));
}
static CUresult take_context_v3(size_t bytes) {
    (void)bytes;
    KEEP(p_cuCtxCreate_v3(&TAKEN.context, NULL, 0, 0, 0));
}
static CUresult take_context_v4(size_t bytes) {
    (void)bytes;
    KEEP(p_cuCtxCreate_v4(&TAKEN.context, NULL, 0, 0));
}
static CUresult drop_context(void) {
    DROP(p_cuCtxDestroy_v2(TAKEN.context));
}

const struct row rows[] = {
    {"alloc", take_alloc, drop_alloc},
    {"alloc_v1", take_alloc_v1, drop_alloc_v1},
    {"pitch", take_pitch, drop_alloc},
    {"pitch_v1", take_pitch_v1, drop_alloc_v1},
    {"managed", take_managed, drop_alloc},
    {"small", take_small, drop_small},
    {"async", take_async, drop_async},
    {"async_ptsz", take_async_ptsz, drop_async_ptsz},
    {"async_stream", take_async_stream, drop_async},
    {"pool", take_pool, drop_async},
    {"pool_ptsz", take_pool_ptsz, drop_async_ptsz},
    {"pool_managed", take_pool_managed, drop_async},
    {"vmm", take_vmm, drop_vmm},
    {"vmm_mapped", take_vmm_mapped_noted, drop_vmm_mapped},
    {"vmm_exported", take_vmm_exported, drop_vmm_exported},
    {"vmm_duplicated", take_vmm_duplicated, drop_vmm_exported},
    {"vmm_imported", take_vmm_imported, drop_vmm},
    {"vmm_bound", take_vmm_bound, drop_vmm},
    {"array", take_array, drop_array},
    {"array_v1", take_array_v1, drop_array},
    {"array3d", take_array3d, drop_array},
    {"array3d_v1", take_array3d_v1, drop_array},
    {"mipmap", take_mipmap, drop_mipmap},
    {"graph", take_graph, drop_graph},
    {"graph_v1", take_graph_v1, drop_graph},
    {"graph_v2", take_graph_v2, drop_graph},
    {"graph_params", take_graph_params, drop_graph},
    {"graph_ptsz", take_graph_ptsz, drop_graph},
    {"graph_node", take_graph_node, drop_graph},
    {"graph_inner", take_graph_inner, drop_graph},
    {"graph_captured", take_graph_captured, drop_graph},
    {"module", take_module, drop_module},
    {"library", take_library, drop_library},
    {"heap", take_heap, drop_heap},
    {"context", take_context, drop_context},
    {"context_v3", take_context_v3, drop_context},
    {"context_v4", take_context_v4, drop_context},
    {NULL, NULL, NULL},
};

const struct row *find_row(const char *name) {
    const struct row *row = rows;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->name ? row : NULL;
}

/* A function of a later CUDA than the driver's may be missing. */
static bool is_expected(int since) {
    int version = 0;
    return !p_cuDriverGetVersion || p_cuDriverGetVersion(&version) != CUDA_SUCCESS ||
           since <= version;
}

bool resolve_all(resolver *by) {
    bool all = true;
#define CUDA_FUNCTION(symbol, name, since, stream, parameters)                                     \
    p_##symbol = (__typeof__(&symbol))by(#symbol, #name, since, stream);                           \
    if (!p_##symbol && is_expected(since)) {                                                       \
        fprintf(stderr, "not found: %s\n", #symbol);                                               \
        all = false;                                                                               \
    }
#define CUDA_ALIAS(symbol, name, since, stream)
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS
    return all;
}

long take_until_refused(const char *name, size_t bytes, long most, int *answer) {
    const struct row *row = find_row(name);
    long got = 0;
    *answer = CUDA_SUCCESS;
    while (row && got < most && (*answer = row->take(bytes)) == CUDA_SUCCESS)
        got++;
    return got;
}
