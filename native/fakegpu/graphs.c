/*
 * Graphs with memory nodes. Addresses belong to the graph from the start; memory comes from the
 * device's graph pool at the first upload or launch, and the pool keeps it until it is trimmed.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"

enum { AUTO_FREE_ON_LAUNCH = 1 };

/* One allocation's addresses, shared by the graph, its executables and whoever holds the memory. */
typedef struct Block {
    CUdeviceptr pointer;
    size_t bytes;
    Device *device;
    unsigned int users;
    struct Block *next;
} Block;

struct CUgraphNode_st {
    int type;
    Block *block;        /* of an allocation */
    CUdeviceptr pointer; /* of a free */
    CUgraph child;       /* which belongs to this node */
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUgraphNode next;
};

struct CUgraph_st {
    CUgraphNode nodes, *last;
};

struct CUgraphExec_st {
    CUgraphNode nodes, *last;
    unsigned long long flags;
};

static Block *blocks;

static void unuse(Block *block) {
    if (--block->users == 0) {
        Block **link = &blocks;
        while (*link != block) {
            link = &(*link)->next;
        }
        *link = block->next;
        fg_unmap(block->pointer, block->bytes);
        free(block);
    }
}

static Block *find_block(CUdeviceptr pointer) {
    Block *block = blocks;
    while (block && block->pointer != pointer) {
        block = block->next;
    }
    return block;
}

static CUgraphNode append(CUgraphNode **last, struct CUgraphNode_st node) {
    CUgraphNode made = malloc(sizeof *made);
    if (made) {
        node.next = NULL;
        *made = node;
        **last = made;
        *last = &made->next;
        if (node.block) {
            node.block->users++;
        }
    }
    return made;
}

static void free_nodes(CUgraphNode node) {
    while (node) {
        CUgraphNode next = node->next;
        if (node->block) {
            unuse(node->block);
        }
        if (node->child) {
            free_nodes(node->child->nodes);
            free(node->child);
        }
        free(node);
        node = next;
    }
}

CUresult fg_graph_new(CUgraph *graph) {
    *graph = calloc(1, sizeof **graph);
    if (!*graph) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*graph)->last = &(*graph)->nodes;
    return CUDA_SUCCESS;
}

CUresult fg_graph_add_alloc(CUgraph graph, Device *device, size_t bytes, CUdeviceptr *pointer,
                            CUgraphNode *node) {
    size_t size = fg_round_up(bytes, fg.state.config.granularity);
    Block *block = calloc(1, sizeof *block);
    if (!block || size < bytes || !(block->pointer = fg_map(size, false))) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->bytes = size;
    block->device = device;
    block->next = blocks;
    blocks = block;
    *node = append(&graph->last,
                   (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .block = block});
    *pointer = block->pointer;
    return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fg_graph_add_free(CUgraph graph, CUdeviceptr pointer, CUgraphNode *node) {
    if (!find_block(pointer)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *node = append(&graph->last, (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
                                                         .pointer = pointer});
    return *node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
    FG_ENTER();
    FG_REQUIRE(graph && !flags, CUDA_ERROR_INVALID_VALUE);
    return fg_leave(fg_graph_new(graph));
}

CUresult cuGraphDestroy(CUgraph graph) {
    FG_ENTER();
    FG_REQUIRE(graph, CUDA_ERROR_INVALID_VALUE);
    free_nodes(graph->nodes);
    free(graph);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count) {
    FG_ENTER();
    FG_REQUIRE(node && graph, CUDA_ERROR_INVALID_VALUE);
    *node = append(&graph->last, (struct CUgraphNode_st){.type = 5});
    return fg_leave(*node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    FG_ENTER();
    FG_REQUIRE(node && graph && params && params->bytesize &&
                   fg_on_device(&params->poolProps.location),
               CUDA_ERROR_INVALID_VALUE);
    int ordinal = fg_ordinal(&params->poolProps.location);
    FG_REQUIRE(ordinal >= 0 && ordinal < fg.count, CUDA_ERROR_INVALID_VALUE);
    CUresult result =
        fg_graph_add_alloc(graph, &fg.device[ordinal], params->bytesize, &params->dptr, node);
    if (result == CUDA_SUCCESS) {
        (*node)->params = *params;
    }
    return fg_leave(result);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr pointer) {
    FG_ENTER();
    FG_REQUIRE(node && graph && pointer, CUDA_ERROR_INVALID_VALUE);
    return fg_leave(fg_graph_add_free(graph, pointer, node));
}

static bool has_memory(const struct CUgraph_st *graph) {
    for (CUgraphNode node = graph->nodes; node; node = node->next) {
        if (node->block || node->pointer || (node->child && has_memory(node->child))) {
            return true;
        }
    }
    return false;
}

/* A graph in a graph: one with memory nodes has to be moved there. (One that is cloned is not kept
 * here: it does nothing.) */
static CUresult add_child(CUgraphNode *node, CUgraph graph,
                          const CUDA_CHILD_GRAPH_NODE_PARAMS *it) {
    FG_ENTER();
    bool moved = it->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    FG_REQUIRE(node && graph && it->graph && it->graph != graph &&
                   (moved || !has_memory(it->graph)),
               CUDA_ERROR_INVALID_VALUE);
    CUgraph child = it->graph;
    CUresult result = moved ? CUDA_SUCCESS : fg_graph_new(&child);
    FG_REQUIRE(result == CUDA_SUCCESS, result);
    *node = append(&graph->last,
                   (struct CUgraphNode_st){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child});
    return fg_leave(*node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child) {
    CUDA_CHILD_GRAPH_NODE_PARAMS cloned = {.graph = child};
    return add_child(node, graph, &cloned);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
    FG_ENTER();
    FG_REQUIRE(node && graph && node->child, CUDA_ERROR_INVALID_VALUE);
    *graph = node->child;
    return fg_leave(CUDA_SUCCESS);
}

static CUresult add_any(CUgraphNode *node, CUgraph graph, CUgraphNodeParams *params) {
    if (params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
        return cuGraphAddMemAllocNode(node, graph, NULL, 0, &params->u.alloc);
    }
    if (params && params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
        return cuGraphAddMemFreeNode(node, graph, NULL, 0, params->u.free);
    }
    if (params && params->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return add_child(node, graph, &params->u.child);
    }
    return params ? cuGraphAddEmptyNode(node, graph, NULL, 0) : CUDA_ERROR_INVALID_VALUE;
}
FG_FORWARD(cuGraphAddNode,
           (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
            CUgraphNodeParams *params),
           add_any(node, graph, params))
FG_FORWARD(cuGraphAddNode_v2,
           (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, const void *edges,
            size_t count, CUgraphNodeParams *params),
           add_any(node, graph, params))

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
    FG_ENTER();
    FG_REQUIRE(node && params && node->block, CUDA_ERROR_INVALID_VALUE);
    *params = node->params;
    params->dptr = node->block->pointer;
    params->bytesize = node->block->bytes;
    if (!fg_on_device(&params->poolProps.location)) { /* captured */
        params->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    }
    params->poolProps.location.id = (int)(node->block->device - fg.device);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *pointer) {
    FG_ENTER();
    FG_REQUIRE(node && pointer && node->type == CU_GRAPH_NODE_TYPE_MEM_FREE,
               CUDA_ERROR_INVALID_VALUE);
    *pointer = node->pointer;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type) {
    FG_ENTER();
    FG_REQUIRE(node && type, CUDA_ERROR_INVALID_VALUE);
    *type = node->type;
    return fg_leave(CUDA_SUCCESS);
}

/* Without an array: how many there are. With one: as many as it has room for. */
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    FG_ENTER();
    FG_REQUIRE(graph && count, CUDA_ERROR_INVALID_VALUE);
    size_t known = 0;
    for (CUgraphNode node = graph->nodes; node; node = node->next, known++) {
        if (nodes && known < *count) {
            nodes[known] = node;
        }
    }
    *count = nodes && *count < known ? *count : known;
    return fg_leave(CUDA_SUCCESS);
}

/* All that runs, in order: the nodes of inner graphs in the place of those. */
static void append_all(CUgraphNode **last, const struct CUgraph_st *graph) {
    for (CUgraphNode node = graph->nodes; node; node = node->next) {
        if (node->child) {
            append_all(last, node->child);
        } else {
            append(last, *node);
        }
    }
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(exec && graph, CUDA_ERROR_INVALID_VALUE);
    CUgraphExec made = calloc(1, sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->last = &made->nodes;
    made->flags = flags;
    append_all(&made->last, graph);
    *exec = made;
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuGraphInstantiate,
           (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t length),
           instantiate(exec, graph, 0))
FG_FORWARD(cuGraphInstantiate_v2,
           (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t length),
           instantiate(exec, graph, 0))
FG_FORWARD(cuGraphInstantiateWithFlags,
           (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
           instantiate(exec, graph, flags))
FG_FORWARD(cuGraphInstantiateWithParams,
           (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
           instantiate(params ? exec : NULL, graph, params ? params->flags : 0))
FG_FORWARD(cuGraphInstantiateWithParams_ptsz,
           (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
           instantiate(params ? exec : NULL, graph, params ? params->flags : 0))

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    FG_ENTER();
    FG_REQUIRE(exec, CUDA_ERROR_INVALID_VALUE);
    free_nodes(exec->nodes);
    free(exec);
    return fg_leave(CUDA_SUCCESS);
}

/* Make the pool of a device as large as its memory in use and `more`. */
static bool reserve(Device *device, uint64_t more) {
    uint64_t needed = device->graph_used + more;
    if (needed > device->graph_reserved) {
        if (!fg_take(device, FG_GRAPH, needed - device->graph_reserved)) {
            return false;
        }
        device->graph_reserved = needed;
    }
    if (device->graph_reserved > device->graph_reserved_high) {
        device->graph_reserved_high = device->graph_reserved;
    }
    return true;
}

/* What a launch needs beyond what is in use; its own earlier memory counts as in use. */
static CUresult upload(CUgraphExec exec) {
    for (int d = 0; d < fg.count; d++) {
        uint64_t more = 0;
        for (CUgraphNode node = exec->nodes; node; node = node->next) {
            bool here = node->block && node->block->device == &fg.device[d];
            more += here && !fg_find(node->block->pointer) ? node->block->bytes : 0;
        }
        if (!reserve(&fg.device[d], more)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult run(CUgraphExec exec) {
    for (CUgraphNode node = exec->nodes; node; node = node->next) {
        Allocation *held = fg_find(node->block ? node->block->pointer : node->pointer);
        if (node->block) {
            Device *device = node->block->device;
            Allocation made = {.pointer = node->block->pointer,
                               .bytes = node->block->bytes,
                               .device = (int)(device - fg.device),
                               .kind = FG_GRAPH};
            if (!fg_remember(made)) {
                return CUDA_ERROR_OUT_OF_MEMORY;
            }
            node->block->users++;
            device->graph_used += node->block->bytes;
            if (device->graph_used > device->graph_used_high) {
                device->graph_used_high = device->graph_used;
            }
        } else if (node->pointer && held) {
            fg_graph_free(held);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult launch(CUgraphExec exec) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(exec, CUDA_ERROR_INVALID_HANDLE);
    for (CUgraphNode node = exec->nodes; node; node = node->next) {
        Allocation *held = node->block ? fg_find(node->block->pointer) : NULL;
        FG_REQUIRE(!held || exec->flags & AUTO_FREE_ON_LAUNCH, CUDA_ERROR_INVALID_VALUE);
        if (held) {
            fg_graph_free(held);
        }
    }
    CUresult result = upload(exec);
    return fg_leave(result == CUDA_SUCCESS ? run(exec) : result);
}
FG_FORWARD(cuGraphLaunch, (CUgraphExec exec, CUstream stream), launch(exec))
FG_FORWARD(cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream), launch(exec))

static CUresult upload_only(CUgraphExec exec) {
    FG_ENTER_CONTEXT(device);
    return fg_leave(exec ? upload(exec) : CUDA_ERROR_INVALID_HANDLE);
}
FG_FORWARD(cuGraphUpload, (CUgraphExec exec, CUstream stream), upload_only(exec))
FG_FORWARD(cuGraphUpload_ptsz, (CUgraphExec exec, CUstream stream), upload_only(exec))

void fg_graph_free(Allocation *allocation) {
    Allocation gone = fg_forget(allocation);
    fg.device[gone.device].graph_used -= gone.bytes;
    unuse(find_block(gone.pointer));
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
    FG_ENTER_DEVICE(ordinal, device);
    fg_give(device, FG_GRAPH, device->graph_reserved - device->graph_used);
    device->graph_reserved = device->graph_used;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void *value) {
    FG_ENTER_DEVICE(ordinal, device);
    const uint64_t counters[] = {device->graph_used, device->graph_used_high,
                                 device->graph_reserved, device->graph_reserved_high};
    FG_REQUIRE(value && (unsigned int)attribute < 4, CUDA_ERROR_INVALID_VALUE);
    memcpy(value, &counters[attribute], sizeof counters[0]);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void *value) {
    FG_ENTER_DEVICE(ordinal, device);
    FG_REQUIRE(value, CUDA_ERROR_INVALID_VALUE);
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) {
        device->graph_used_high = device->graph_used;
    } else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) {
        device->graph_reserved_high = device->graph_reserved;
    } else {
        return fg_leave(CUDA_ERROR_INVALID_VALUE);
    }
    return fg_leave(CUDA_SUCCESS);
}
