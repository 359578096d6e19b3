/*
 * Graphs with memory nodes take from the device's graph pool, which is charged for what it has
 * reserved, as other pools are. The driver may reserve when the graph is instantiated, uploaded or
 * launched, so before each of these the most that the graph's nodes hold at one time must fit.
 *
 * That most is found by going through the nodes in the order in which they were added: exact for a
 * chain, too low for branches that run at the same time; what they take is charged afterwards.
 */
#include "charge.h"
#include "limit.h"
#include "pools.h"

#include <stdlib.h>
#include <string.h>

static _Atomic(int) execs; /* graphs with memory nodes that are ready to run */

/* Per device: what a graph's nodes hold at one time, and what is taken for it around a call. */
struct need {
    bool used;
    struct place place;
    uint64_t most;
    struct growth growth;
};

static void end(const struct need need[ACCOUNT_DEVICES]) {
    for (int i = 0; i < ACCOUNT_DEVICES; i++)
        if (need[i].used)
            pools_end(&need[i].growth);
}

static bool begin(struct need need[ACCOUNT_DEVICES]) {
    for (int i = 0; i < ACCOUNT_DEVICES; i++) {
        CUmemoryPool pool = pools_of_graphs(need[i].place.ordinal);
        if (!need[i].used || pools_begin(&need[i].growth, pool, &need[i].place, need[i].most))
            continue;
        for (int rest = i; rest < ACCOUNT_DEVICES; rest++)
            need[rest].used = false;
        end(need);
        return false;
    }
    return true;
}

/* One allocation node: false: it is not on a device that can be charged. */
static bool place_of(const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct place *out) {
    return charge_location(&params->poolProps.location, params->poolProps.allocType, out);
}

/* What the nodes seen so far hold on each device: now, and at most. */
struct sum {
    struct need *need;
    uint64_t live[ACCOUNT_DEVICES];
};

static bool add_alloc(struct sum *sum, CUgraphNode node) {
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    struct place place;
    memset(&params, 0, sizeof params);
    if (CALL_DRIVER(cuGraphMemAllocNodeGetParams, node, &params) != CUDA_SUCCESS)
        return false;
    if (!place_of(&params, &place))
        return true;
    if (place.device == ACCOUNT_BEYOND)
        return limit_bytes() == LIMIT_NONE;
    struct need *of = &sum->need[place.device];
    uint64_t *live = &sum->live[place.device];
    *of = (struct need){.used = true, .place = place, .most = of->most};
    *live += charge_rounded(params.bytesize);
    of->most = *live > of->most ? *live : of->most;
    owned_put(OWNED_NODE, params.dptr,
              (struct owned){.bytes = params.bytesize, .device = place.device});
    return true;
}

static bool add_free(struct sum *sum, CUgraphNode node) {
    CUdeviceptr freed;
    struct owned entry;
    if (CALL_DRIVER(cuGraphMemFreeNodeGetParams, node, &freed) != CUDA_SUCCESS ||
        !owned_look_up(OWNED_NODE, freed, &entry))
        return true;
    uint64_t *live = &sum->live[entry.device];
    *live = charge_less(*live, charge_rounded(entry.bytes));
    return true;
}

static bool add_graph(struct sum *sum, CUgraph graph);

/* A graph that was moved into this one may have memory nodes. */
static bool add_child(struct sum *sum, CUgraphNode node) {
    CUgraph child;
    return CALL_DRIVER(cuGraphChildGraphNodeGetGraph, node, &child) == CUDA_SUCCESS &&
           add_graph(sum, child);
}

/* false: the driver does not say what it is. */
static bool add_node(struct sum *sum, CUgraphNode node) {
    int type = -1;
    if (CALL_DRIVER(cuGraphNodeGetType, node, &type) != CUDA_SUCCESS)
        return false;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return add_alloc(sum, node);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return add_free(sum, node);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(sum, node);
    default:
        return true;
    }
}

static bool add_graph(struct sum *sum, CUgraph graph) {
    size_t count = 0;
    if (CALL_DRIVER(cuGraphGetNodes, graph, NULL, &count) != CUDA_SUCCESS || !count)
        return true;
    CUgraphNode *nodes = malloc(count * sizeof *nodes);
    bool known = nodes && CALL_DRIVER(cuGraphGetNodes, graph, nodes, &count) == CUDA_SUCCESS;
    for (size_t i = 0; known && i < count; i++)
        known = add_node(sum, nodes[i]);
    free(nodes);
    return known;
}

/* false: what it holds could not be told. A graph that the driver does not know is its affair. */
static bool measure(CUgraph graph, struct need need[ACCOUNT_DEVICES]) {
    struct sum sum = {.need = need};
    memset(need, 0, ACCOUNT_DEVICES * sizeof *need);
    return !graph || add_graph(&sum, graph);
}

/* The handle of an executable graph is an address aligned to at least 16: the device fits below. */
static uint64_t exec_key(CUgraphExec exec, int device) {
    return (uint64_t)(uintptr_t)exec + (uint64_t)device;
}

static void note(CUgraphExec exec, const struct need need[ACCOUNT_DEVICES]) {
    for (int i = 0; i < ACCOUNT_DEVICES; i++) {
        if (!need[i].used)
            continue;
        owned_put(OWNED_EXEC, exec_key(exec, i),
                  (struct owned){.bytes = need[i].most,
                                 .owner = (uint64_t)need[i].place.ordinal,
                                 .device = i});
        execs++;
    }
}

static void recall(CUgraphExec exec, struct need need[ACCOUNT_DEVICES]) {
    struct owned entry;
    memset(need, 0, ACCOUNT_DEVICES * sizeof *need);
    for (int i = 0; i < ACCOUNT_DEVICES; i++)
        if (owned_look_up(OWNED_EXEC, exec_key(exec, i), &entry))
            need[i] = (struct need){.used = true,
                                    .place = {.device = i, .ordinal = (CUdevice)entry.owner},
                                    .most = entry.bytes};
}

/* A node that could not fit even into an empty container is refused at once. */
static bool can_fit(const CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    struct place place;
    if (!params || !place_of(params, &place) || params->bytesize <= limit_bytes())
        return true;
    account_refused(place.device);
    return false;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    ENTER(cuGraphAddMemAllocNode, node, graph, dependencies, count, params);
    if (!can_fit(params))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CALL_DRIVER(cuGraphAddMemAllocNode, node, graph, dependencies, count, params);
}

static bool node_can_fit(const CUgraphNodeParams *params) {
    return !params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || can_fit(&params->u.alloc);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *params) {
    ENTER(cuGraphAddNode, node, graph, dependencies, count, params);
    if (!node_can_fit(params))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CALL_DRIVER(cuGraphAddNode, node, graph, dependencies, count, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const void *edges, size_t count, CUgraphNodeParams *params) {
    ENTER(cuGraphAddNode_v2, node, graph, dependencies, edges, count, params);
    if (!node_can_fit(params))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CALL_DRIVER(cuGraphAddNode_v2, node, graph, dependencies, edges, count, params);
}

#define INSTANTIATE(symbol, parameters, ...)                                                       \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        struct need need[ACCOUNT_DEVICES];                                                         \
        if (!measure(graph, need) || !begin(need))                                                 \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        CUresult answer = CALL_DRIVER(symbol, __VA_ARGS__);                                        \
        end(need);                                                                                 \
        if (answer == CUDA_SUCCESS)                                                                \
            note(*exec, need);                                                                     \
        return answer;                                                                             \
    }
INSTANTIATE(cuGraphInstantiate,
            (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t length),
            exec, graph, error_node, log, length)
INSTANTIATE(cuGraphInstantiate_v2,
            (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t length),
            exec, graph, error_node, log, length)
INSTANTIATE(cuGraphInstantiateWithFlags,
            (CUgraphExec * exec, CUgraph graph, unsigned long long flags), exec, graph, flags)
INSTANTIATE(cuGraphInstantiateWithParams,
            (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), exec, graph,
            params)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz,
            (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), exec, graph,
            params)

/* Graphs without memory nodes, which is nearly all of them, go straight to the driver. */
#define RUN(symbol)                                                                                \
    CUresult symbol(CUgraphExec exec, CUstream stream) {                                           \
        ENTER(symbol, exec, stream);                                                               \
        if (!execs)                                                                                \
            return CALL_DRIVER(symbol, exec, stream);                                              \
        struct need need[ACCOUNT_DEVICES];                                                         \
        recall(exec, need);                                                                        \
        if (!begin(need))                                                                          \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        CUresult answer = CALL_DRIVER(symbol, exec, stream);                                       \
        end(need);                                                                                 \
        return answer;                                                                             \
    }
RUN(cuGraphUpload)
RUN(cuGraphUpload_ptsz)
RUN(cuGraphLaunch)
RUN(cuGraphLaunch_ptsz)

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    ENTER(cuGraphExecDestroy, exec);
    /* The notes go first: afterwards the number may be that of another thread's new graph. */
    struct owned entries[ACCOUNT_DEVICES];
    bool ours[ACCOUNT_DEVICES] = {0};
    for (int i = 0; execs && i < ACCOUNT_DEVICES; i++)
        ours[i] = owned_take(OWNED_EXEC, exec_key(exec, i), &entries[i]);
    CUresult answer = CALL_DRIVER(cuGraphExecDestroy, exec);
    for (int i = 0; i < ACCOUNT_DEVICES; i++) {
        if (ours[i] && answer != CUDA_SUCCESS) {
            owned_put(OWNED_EXEC, exec_key(exec, i), entries[i]);
        } else if (ours[i]) {
            execs--;
            pools_settle(pools_of_graphs((CUdevice)entries[i].owner));
        }
    }
    return answer;
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
    ENTER(cuDeviceGraphMemTrim, device);
    CUresult answer = CALL_DRIVER(cuDeviceGraphMemTrim, device);
    pools_settle(pools_of_graphs(device));
    return answer;
}
