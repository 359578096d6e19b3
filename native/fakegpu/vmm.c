/*
 * Virtual memory management: physical memory by handle, reserved addresses, and maps between them.
 * Physical memory goes back after its last release and its last unmap. A handle that may be
 * exported has a memory file, so that another process sees the same bytes; an imported one costs
 * its importer nothing. An exported descriptor keeps the memory while it is open in the process
 * that made it. (Unlike with the real driver, importers and other processes do not keep it.)
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm.h"

typedef struct Range {
    CUdeviceptr pointer;
    size_t bytes;
    Physical *physical; /* of a map, and where in it that begins */
    size_t offset;
    int access;
    struct Range *next;
} Range;

/* A descriptor that was given out. */
typedef struct Export {
    int file;
    ino_t inode;
    Physical *physical;
    struct Export *next;
} Export;

static Export *exports;
static Physical *physicals;
static Physical *spare; /* released: the next one gets the number of the last */
static Range *reservations, *maps;

Physical *fg_physical(CUmemGenericAllocationHandle handle) {
    Physical *physical = physicals;
    while (physical && (CUmemGenericAllocationHandle)(uintptr_t)physical != handle) {
        physical = physical->next;
    }
    return physical && physical->references ? physical : NULL;
}

static Range **find_range(Range **list, CUdeviceptr pointer, size_t bytes) {
    while (*list &&
           !(pointer >= (*list)->pointer && pointer - (*list)->pointer + bytes <= (*list)->bytes)) {
        list = &(*list)->next;
    }
    return list;
}

static bool add_range(Range **list, Range range) {
    Range *made = malloc(sizeof *made);
    if (made) {
        range.next = *list;
        *made = range;
        *list = made;
    }
    return made != NULL;
}

static Range drop_range(Range **link) {
    Range *gone = *link, copy = *gone;
    *link = gone->next;
    free(gone);
    return copy;
}

static Physical *new_physical(Physical physical, CUmemGenericAllocationHandle *handle) {
    Physical *made = spare;
    if (made) {
        spare = made->next;
    } else {
        made = malloc(sizeof *made);
    }
    if (made) {
        physical.references = 1;
        physical.next = physicals;
        *made = physical;
        physicals = made;
        *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    }
    return made;
}

static void drop_if_unused(Physical *physical) {
    if (physical->references || physical->maps || physical->exports || physical->bindings) {
        return;
    }
    if (physical->multicast) {
        fg_unbind_all(physical);
    }
    Physical **link = &physicals;
    while (*link != physical) {
        link = &(*link)->next;
    }
    *link = physical->next;
    if (physical->charged) {
        fg_give(physical->charged, FG_VMM, physical->bytes);
    }
    if (physical->file >= 0) {
        close(physical->file);
    }
    physical->next = spare;
    spare = physical;
}

void fg_vmm_drop_closed(void) {
    for (Export **link = &exports; *link;) {
        Export *export = *link;
        struct stat status;
        if (!fstat(export->file, &status) && status.st_ino == export->inode) {
            link = &export->next;
            continue;
        }
        *link = export->next;
        export->physical->exports--;
        drop_if_unused(export->physical);
        free(export);
    }
}

void fg_physical_unbound(Physical *physical) {
    physical->bindings--;
    drop_if_unused(physical);
}

Physical *fg_physical_at(CUdeviceptr pointer, size_t *offset) {
    Range *map = *find_range(&maps, pointer, 1);
    *offset = map ? map->offset + (pointer - map->pointer) : 0;
    return map ? map->physical : NULL;
}

CUresult fg_physical_new(Physical physical, CUmemGenericAllocationHandle *handle) {
    return new_physical(physical, handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static bool in_granules(size_t bytes) {
    return bytes && bytes % fg.state.config.granularity == 0;
}

/* After a fork: all of it was the parent's. */
void fg_vmm_drop(void) {
    while (exports) {
        Export *gone = exports;
        exports = gone->next;
        free(gone);
    }
    fg_bindings_drop();
    while (physicals) {
        Physical *gone = physicals;
        physicals = gone->next;
        free(gone);
    }
    while (maps) {
        drop_range(&maps);
    }
    while (reservations) {
        drop_range(&reservations);
    }
}

bool fg_vmm_holds(CUdeviceptr pointer, size_t bytes) {
    while (bytes) {
        Range *map = *find_range(&maps, pointer, 1);
        if (!map || map->access != 3) {
            return false;
        }
        size_t here = map->bytes - (pointer - map->pointer);
        here = here < bytes ? here : bytes;
        pointer += here;
        bytes -= here;
    }
    return true;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option) {
    FG_ENTER();
    FG_REQUIRE(granularity && properties, CUDA_ERROR_INVALID_VALUE);
    *granularity = fg.state.config.granularity;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags) {
    FG_ENTER();
    FG_REQUIRE(handle && properties && !flags && in_granules(bytes), CUDA_ERROR_INVALID_VALUE);
    FG_REQUIRE(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED, CUDA_ERROR_INVALID_VALUE);
    Physical wanted = {.properties = *properties, .bytes = bytes, .file = -1};
    int ordinal = fg_ordinal(&properties->location);
    if (fg_on_device(&properties->location)) {
        FG_REQUIRE(ordinal >= 0 && ordinal < fg.count, CUDA_ERROR_INVALID_DEVICE);
        wanted.charged = &fg.device[ordinal];
        FG_REQUIRE(fg_take(wanted.charged, FG_VMM, bytes), CUDA_ERROR_OUT_OF_MEMORY);
    } else {
        FG_REQUIRE(properties->location.type >= CU_MEM_LOCATION_TYPE_HOST &&
                       properties->location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
                   CUDA_ERROR_INVALID_VALUE);
    }
    bool made = true;
    if (properties->requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        wanted.file = memfd_create("fakegpu", MFD_CLOEXEC);
        made = wanted.file >= 0 && !ftruncate(wanted.file, (off_t)bytes);
    }
    if (!made || !new_physical(wanted, handle)) {
        if (wanted.charged) {
            fg_give(wanted.charged, FG_VMM, bytes);
        }
        return fg_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    FG_ENTER();
    Physical *physical = fg_physical(handle);
    FG_REQUIRE(physical, CUDA_ERROR_INVALID_VALUE);
    physical->references--;
    drop_if_unused(physical);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    FG_ENTER();
    Range *map = *find_range(&maps, (CUdeviceptr)(uintptr_t)address, 1);
    FG_REQUIRE(handle && map, CUDA_ERROR_INVALID_VALUE);
    map->physical->references++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)map->physical;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle) {
    FG_ENTER();
    Physical *physical = fg_physical(handle);
    FG_REQUIRE(physical && properties, CUDA_ERROR_INVALID_VALUE);
    *properties = physical->properties;
    return fg_leave(CUDA_SUCCESS);
}

static void *blank(void *at, size_t bytes, int how) {
    return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes, size_t alignment,
                             CUdeviceptr address, unsigned long long flags) {
    FG_ENTER();
    size_t granule = fg.state.config.granularity;
    alignment = alignment > granule ? alignment : granule;
    FG_REQUIRE(pointer && !flags && in_granules(bytes) && !(alignment & (alignment - 1)),
               CUDA_ERROR_INVALID_VALUE);
    char *map = blank((void *)(uintptr_t)address, bytes + alignment, 0);
    FG_REQUIRE(map != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    char *start = (char *)fg_round_up((uintptr_t)map, alignment);
    if (start > map) {
        munmap(map, (size_t)(start - map));
    }
    munmap(start + bytes, alignment - (size_t)(start - map));
    *pointer = (CUdeviceptr)(uintptr_t)start;
    bool known = add_range(&reservations, (Range){.pointer = *pointer, .bytes = bytes});
    return fg_leave(known ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t bytes) {
    FG_ENTER();
    Range **reserved = find_range(&reservations, pointer, bytes);
    FG_REQUIRE(*reserved && (*reserved)->pointer == pointer && (*reserved)->bytes == bytes,
               CUDA_ERROR_INVALID_VALUE);
    for (Range *map = maps; map; map = map->next) {
        FG_REQUIRE(map->pointer < pointer || map->pointer >= pointer + bytes,
                   CUDA_ERROR_INVALID_VALUE);
    }
    drop_range(reserved);
    munmap((void *)(uintptr_t)pointer, bytes);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    FG_ENTER();
    Physical *physical = fg_physical(handle);
    FG_REQUIRE(physical && !flags && in_granules(bytes) && offset <= physical->bytes &&
                   bytes <= physical->bytes - offset && *find_range(&reservations, pointer, bytes),
               CUDA_ERROR_INVALID_VALUE);
    for (Range *map = maps; map; map = map->next) {
        FG_REQUIRE(pointer + bytes <= map->pointer || pointer >= map->pointer + map->bytes,
                   CUDA_ERROR_INVALID_VALUE);
    }
    void *at = (void *)(uintptr_t)pointer;
    if (physical->file >= 0) {
        at = mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->file, (off_t)offset);
    }
    FG_REQUIRE(at != MAP_FAILED && add_range(&maps, (Range){.pointer = pointer,
                                                            .bytes = bytes,
                                                            .physical = physical,
                                                            .offset = offset}),
               CUDA_ERROR_MAP_FAILED);
    physical->maps++;
    return fg_leave(CUDA_SUCCESS);
}

/* Whole maps only, as the real driver wants it; one call may undo several neighbours. */
CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
    FG_ENTER();
    size_t covered = 0;
    for (Range *map = maps; map; map = map->next) {
        bool inside = map->pointer >= pointer && map->pointer + map->bytes <= pointer + bytes;
        covered += inside ? map->bytes : 0;
    }
    FG_REQUIRE(bytes && covered == bytes, CUDA_ERROR_INVALID_VALUE);
    for (Range **link = &maps; *link;) {
        if ((*link)->pointer >= pointer && (*link)->pointer < pointer + bytes) {
            Range gone = drop_range(link);
            gone.physical->maps--;
            drop_if_unused(gone.physical);
        } else {
            link = &(*link)->next;
        }
    }
    blank((void *)(uintptr_t)pointer, bytes, MAP_FIXED);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access,
                        size_t count) {
    FG_ENTER();
    FG_REQUIRE(access && count && bytes, CUDA_ERROR_INVALID_VALUE);
    bool found = false;
    for (Range *map = maps; map; map = map->next) {
        if (map->pointer >= pointer && map->pointer + map->bytes <= pointer + bytes) {
            int protection = access[0].flags == 3   ? PROT_READ | PROT_WRITE
                             : access[0].flags == 1 ? PROT_READ
                                                    : PROT_NONE;
            mprotect((void *)(uintptr_t)map->pointer, map->bytes, protection);
            map->access = access[0].flags;
            found = true;
        }
    }
    return fg_leave(found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr pointer) {
    FG_ENTER();
    Range *map = *find_range(&maps, pointer, 1);
    FG_REQUIRE(map && flags && location, CUDA_ERROR_INVALID_VALUE);
    *flags = (unsigned long long)map->access;
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    FG_ENTER();
    Physical *physical = fg_physical(handle);
    FG_REQUIRE(shareable && physical && physical->file >= 0 && !flags &&
                   type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
               CUDA_ERROR_INVALID_VALUE);
    int file = dup(physical->file);
    struct stat status;
    FG_REQUIRE(file >= 0 && !fstat(file, &status), CUDA_ERROR_OPERATING_SYSTEM);
    Export *made = malloc(sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    *made = (Export){.file = file, .inode = status.st_ino, .physical = physical, .next = exports};
    exports = made;
    physical->exports++;
    memcpy(shareable, &file, sizeof file);
    return fg_leave(CUDA_SUCCESS);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type) {
    FG_ENTER();
    struct stat status;
    Physical imported = {.properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = type,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}}};
    FG_REQUIRE(handle && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
               CUDA_ERROR_INVALID_VALUE);
    imported.file = dup((int)(intptr_t)shareable);
    FG_REQUIRE(imported.file >= 0 && !fstat(imported.file, &status), CUDA_ERROR_INVALID_VALUE);
    imported.bytes = (size_t)status.st_size;
    return fg_leave(new_physical(imported, handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
