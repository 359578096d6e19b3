/* The allocations of this process, by pointer, and host memory that stands for device memory. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "process.h"

enum { BUCKETS = 4096, SMALLEST_ALIGNMENT = 512 };
static Allocation *table[BUCKETS];

static Allocation **bucket(CUdeviceptr pointer) {
    return &table[(pointer / SMALLEST_ALIGNMENT) % BUCKETS];
}

bool fg_remember(Allocation allocation) {
    Allocation *entry = malloc(sizeof *entry);
    if (entry) {
        *entry = allocation;
        entry->context = fg_current();
        entry->next = *bucket(entry->pointer);
        *bucket(entry->pointer) = entry;
    }
    return entry != NULL;
}

Allocation *fg_find(CUdeviceptr pointer) {
    Allocation *entry = *bucket(pointer);
    while (entry && entry->pointer != pointer) {
        entry = entry->next;
    }
    return entry;
}

Allocation *fg_find_range(CUdeviceptr inside) {
    for (int b = 0; b < BUCKETS; b++) {
        for (Allocation *entry = table[b]; entry; entry = entry->next) {
            if (inside >= entry->pointer && inside - entry->pointer < entry->bytes) {
                return entry;
            }
        }
    }
    return NULL;
}

Allocation fg_forget(Allocation *allocation) {
    Allocation **link = bucket(allocation->pointer), copy = *allocation;
    while (*link != allocation) {
        link = &(*link)->next;
    }
    *link = allocation->next;
    free(allocation);
    return copy;
}

void fg_free_of(CUcontext context) {
    for (int b = 0; b < BUCKETS; b++) {
        for (Allocation *entry = table[b], *next; entry; entry = next) {
            next = entry->next;
            if (entry->context == context &&
                (entry->kind == FG_SYNC || entry->kind == FG_MANAGED)) {
                fg_free(entry);
            }
        }
    }
}

void fg_forget_device(int device) {
    for (int b = 0; b < BUCKETS; b++) {
        Allocation *entry = table[b], *next;
        for (; entry; entry = next) {
            next = entry->next;
            if (device < 0 || entry->device == device) {
                Allocation gone = fg_forget(entry);
                if (gone.kind != FG_GRAPH) { /* a graph keeps its addresses as long as it lives */
                    fg_unmap(gone.pointer, gone.bytes);
                }
            }
        }
    }
}

static bool on_heap(size_t bytes) {
    return bytes < FG_MIB;
}

static CUdeviceptr map_low(size_t bytes) {
    for (uintptr_t at = 0x20000000; at + bytes < 0x70000000; at += 0x400000) {
        void *map = mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (map == (void *)at) {
            return at;
        }
        if (map != MAP_FAILED) { /* a kernel that does not know the flag */
            munmap(map, bytes);
        }
    }
    return 0;
}

/* Small ones come from the heap, because the kernel counts mappings. */
CUdeviceptr fg_map(size_t bytes, bool low) {
    if (low) {
        return map_low(bytes);
    }
    void *memory;
    if (on_heap(bytes)) {
        return posix_memalign(&memory, SMALLEST_ALIGNMENT, bytes) ? 0
                                                                  : (CUdeviceptr)(uintptr_t)memory;
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    return memory == MAP_FAILED ? 0 : (CUdeviceptr)(uintptr_t)memory;
}

void fg_unmap(CUdeviceptr pointer, size_t bytes) {
    bool low = pointer >= 0x20000000 && pointer < 0x70000000;
    if (on_heap(bytes) && !low) {
        free((void *)(uintptr_t)pointer);
    } else {
        munmap((void *)(uintptr_t)pointer, bytes);
    }
}
