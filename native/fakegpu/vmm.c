/*
 * Virtual memory management: physical memory by handle, reserved addresses, and maps between them.
 * Physical memory goes back after its last release and its last unmap, in this process and every
 * other, and when the last descriptor that was exported of it is closed ("Virtual Memory
 * Management", cuMemRelease: "when all outstanding references to the handle (including its
 * shareable counterparts) are also released"). A handle that may be exported has a file, so that
 * another process sees the same bytes; whom it is counted for says shares.c.
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

static bool lingering; /* memory is counted here that only descriptors keep */
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

static void give_back(Physical *physical) {
    if (physical->file >= 0) { /* before it is asked whether anybody has it open */
        close(physical->file);
    }
    if (physical->share) {
        fg_lock(&fg.state);
        lingering |= fg_share_leave(&fg.state, fg_share_find(&fg.state, physical->share), false);
        fg_unlock(&fg.state);
    } else if (physical->charged) {
        fg_give(physical->charged, FG_VMM, physical->bytes);
    }
}

static void drop_if_unused(Physical *physical) {
    if (physical->references || physical->maps || physical->bindings) {
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
    give_back(physical);
    physical->next = spare;
    spare = physical;
}

void fg_vmm_drop_closed(void) {
    if (lingering) {
        fg_lock(&fg.state);
        lingering = fg_shares_look(&fg.state);
        fg_unlock(&fg.state);
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
    lingering = false;
    fg_bindings_drop();
    while (physicals) {
        Physical *gone = physicals;
        physicals = gone->next;
        if (gone->file >= 0) {
            close(gone->file);
        }
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

/* The machine's memory has a file as well, which is nobody else's to count. */
static bool make_exportable(Physical *physical) {
    if (!physical->charged) {
        physical->file = memfd_create("fakegpu", MFD_CLOEXEC);
        return physical->file >= 0 && !ftruncate(physical->file, (off_t)physical->bytes);
    }
    fg_lock(&fg.state);
    FgShare *share = fg_share_new(&fg.state, physical->charged->shared, FG_VMM, physical->bytes,
                                  &physical->file);
    physical->share = share ? share->number : 0;
    fg_unlock(&fg.state);
    return share;
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
        made = make_exportable(&wanted);
    }
    if (!made || !new_physical(wanted, handle)) {
        give_back(&wanted);
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
    fg_lock(&fg.state);
    FgShare *share = fg_share_find(&fg.state, physical->share);
    int file = share ? fg_share_open(share, true) : dup(physical->file);
    fg_unlock(&fg.state);
    FG_REQUIRE(file >= 0, CUDA_ERROR_OPERATING_SYSTEM);
    memcpy(shareable, &file, sizeof file);
    return fg_leave(CUDA_SUCCESS);
}

/* What a descriptor stands for, held by this process as well; false: for no memory that is there.
 */
static bool import(int descriptor, Physical *imported) {
    fg_lock(&fg.state);
    FgShare *share = fg_share_of_file(&fg.state, descriptor);
    imported->file = share ? fg_share_open(share, false) : -1;
    if (imported->file >= 0) {
        fg_share_join(&fg.state, share);
        imported->share = share->number;
        imported->bytes = share->bytes;
    }
    fg_unlock(&fg.state);
    return imported->file >= 0;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type) {
    FG_ENTER();
    Physical imported = {.properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes = type,
                                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}}};
    FG_REQUIRE(handle && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
                   import((int)(intptr_t)shareable, &imported),
               CUDA_ERROR_INVALID_VALUE);
    if (!new_physical(imported, handle)) {
        give_back(&imported);
        return fg_leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    return fg_leave(CUDA_SUCCESS);
}
