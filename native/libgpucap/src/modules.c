/*
 * Modules and libraries. Their variables are charged as their image declares them (cuda_image.h),
 * before it is loaded, until it is unloaded or its context gone. An image that is compressed does
 * not say it: what is free of the device is asked before the load and after it, and the module
 * unloaded again if that does not fit. Another container may have taken memory in between: so it is
 * tried twice, and the lesser figure counts.
 *
 * A library that is loaded without a context is charged with the next one that is made: the driver
 * loads it there when a kernel of it is asked for. Code is memory of the context's kind, which the
 * agent measures: a container that is at its cap or above gets no more of it.
 */
#include "modules.h"

#include "charge.h"
#include "cuda_image.h"
#include "limit.h"
#include "os.h"
#include "pools.h"

#include <sys/mman.h>

#define TRIES          2
#define MEASURED_LEAST (16u << 20) /* less is code, and what others do meanwhile */

static _Atomic(int) libraries; /* that no context has, as far as is known */
static _Atomic(int) any;       /* library may be in one */

struct load {
    struct place place; /* device -1: no context */
    enum owned_kind kind;
    struct cuda_image image;
    uint64_t bytes; /* charged */
    size_t before;  /* free of the device; 0: nobody needs to know */
};

static bool is_full(const struct place *place) {
    if (account_held(place->device) < limit_bytes())
        return false;
    pools_trim(place);
    if (account_held(place->device) < limit_bytes())
        return false;
    account_refused(place->device);
    return true;
}

static struct cuda_image in_file(const char *path) {
    struct cuda_image found = {.known = true}; /* the driver refuses what cannot be read */
    struct stat status;
    int kept_errno = errno;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && os_fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED) {
            found = cuda_image_within(bytes, (uint64_t)status.st_size);
            munmap(bytes, (size_t)status.st_size);
        }
    }
    if (file >= 0)
        close(file);
    errno = kept_errno;
    return found;
}

/* false: the container cannot hold it. */
static bool begin(struct load *load, enum owned_kind kind, const void *image, const char *path) {
    *load = (struct load){.place = {.device = -1}, .kind = kind};
    struct place place;
    bool context = charge_current(&place);
    if (context && is_full(&place))
        return false;
    int kept_errno = errno;
    load->image = path ? in_file(path) : cuda_image(image);
    errno = kept_errno;
    if (!context)
        return true;
    load->place = place;
    load->bytes = charge_rounded(load->image.bytes);
    if (load->bytes && !charge_reserve(&place, load->bytes))
        return false;
    size_t total;
    if (!load->image.known && limit_bytes() != LIMIT_NONE)
        CALL_DRIVER(cuMemGetInfo_v2, &load->before, &total);
    return true;
}

/* What the device has less than before. */
static uint64_t measured(const struct load *load) {
    size_t now = 0, total;
    if (!load->before || CALL_DRIVER(cuMemGetInfo_v2, &now, &total) != CUDA_SUCCESS)
        return 0;
    uint64_t less = charge_less(load->before, now);
    return less < MEASURED_LEAST ? 0 : less;
}

static void note(const struct load *load, void *handle) {
    struct owned entry = {
        .bytes = load->bytes, .owner = load->place.context, .device = load->place.device};
    if (load->place.device < 0) {
        entry.bytes = charge_rounded(load->image.bytes);
        libraries += entry.bytes != 0;
    }
    any |= load->kind == OWNED_LIBRARY;
    if (entry.bytes)
        owned_put(load->kind, (uint64_t)(uintptr_t)handle, entry);
}

/* After the driver's call; false: it is to be undone, and tried once more or not. */
static bool fits(struct load *load, uint64_t *least) {
    uint64_t more = measured(load);
    *least = more < *least ? more : *least;
    if (*least && !charge_reserve(&load->place, *least))
        return false;
    load->bytes += *least;
    return true;
}

static CUresult failed(const struct load *load, CUresult answer) {
    if (load->bytes)
        charge_return(load->place.device, load->bytes);
    return answer;
}

#define LOAD(symbol, owned, image, path, unload, parameters, ...)                                  \
    CUresult symbol parameters {                                                                   \
        ENTER(symbol, __VA_ARGS__);                                                                \
        struct load load;                                                                          \
        if (!out || (!(image) && !(path)))                                                         \
            return CALL_DRIVER(symbol, __VA_ARGS__);                                               \
        if (!begin(&load, owned, image, path))                                                     \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        uint64_t least = UINT64_MAX;                                                               \
        for (int i = 0; i < TRIES; i++) {                                                          \
            CUresult answer = CALL_DRIVER(symbol, __VA_ARGS__);                                    \
            if (answer != CUDA_SUCCESS)                                                            \
                return failed(&load, answer);                                                      \
            if (fits(&load, &least)) {                                                             \
                note(&load, *out);                                                                 \
                return answer;                                                                     \
            }                                                                                      \
            CALL_DRIVER(unload, *out);                                                             \
        }                                                                                          \
        return failed(&load, CUDA_ERROR_OUT_OF_MEMORY);                                            \
    }
#define MODULE(symbol, image, path, parameters, ...)                                               \
    LOAD(symbol, OWNED_MODULE, image, path, cuModuleUnload, parameters, __VA_ARGS__)
#define LIBRARY(symbol, image, path, parameters, ...)                                              \
    LOAD(symbol, OWNED_LIBRARY, image, path, cuLibraryUnload, parameters, __VA_ARGS__)

MODULE(cuModuleLoad, NULL, path, (CUmodule * out, const char *path), out, path)
MODULE(cuModuleLoadData, image, NULL, (CUmodule * out, const void *image), out, image)
MODULE(cuModuleLoadDataEx, image, NULL,
       (CUmodule * out, const void *image, unsigned int count, int *options, void **values), out,
       image, count, options, values)
MODULE(cuModuleLoadFatBinary, image, NULL, (CUmodule * out, const void *image), out, image)
LIBRARY(cuLibraryLoadData, image, NULL,
        (CUlibrary * out, const void *image, int *jit, void **jit_values, unsigned int jit_count,
         int *options, void **values, unsigned int count),
        out, image, jit, jit_values, jit_count, options, values, count)
LIBRARY(cuLibraryLoadFromFile, NULL, path,
        (CUlibrary * out, const char *path, int *jit, void **jit_values, unsigned int jit_count,
         int *options, void **values, unsigned int count),
        out, path, jit, jit_values, jit_count, options, values, count)

CUresult cuModuleUnload(CUmodule module) {
    ENTER(cuModuleUnload, module);
    struct owned entry;
    uint64_t key = (uint64_t)(uintptr_t)module;
    bool ours = owned_take(OWNED_MODULE, key, &entry);
    CUresult answer = CALL_DRIVER(cuModuleUnload, module);
    if (ours)
        charge_released(answer, OWNED_MODULE, key, &entry);
    return answer;
}

CUresult cuLibraryUnload(CUlibrary library) {
    ENTER(cuLibraryUnload, library);
    struct owned entry;
    uint64_t key = (uint64_t)(uintptr_t)library;
    bool ours = owned_take(OWNED_LIBRARY, key, &entry);
    CUresult answer = CALL_DRIVER(cuLibraryUnload, library);
    if (ours && answer == CUDA_SUCCESS && entry.device < 0)
        libraries--; /* nothing was charged */
    else if (ours)
        charge_released(answer, OWNED_LIBRARY, key, &entry);
    return answer;
}

uint64_t modules_pending(void) {
    struct owned entry;
    uint64_t key, sum = 0;
    for (uint64_t at = 0; libraries && owned_next(OWNED_LIBRARY, &at, &key, &entry);)
        if (entry.device < 0 && __builtin_add_overflow(sum, entry.bytes, &sum))
            return UINT64_MAX;
    return sum;
}

uint64_t modules_adopted(uint64_t context, int device) {
    struct owned entry;
    uint64_t key, sum = 0;
    for (uint64_t at = 0; libraries && owned_next(OWNED_LIBRARY, &at, &key, &entry);)
        if (entry.device < 0 && owned_take(OWNED_LIBRARY, key, &entry)) {
            libraries--;
            sum += entry.bytes;
            entry.device = device;
            entry.owner = context;
            owned_put(OWNED_LIBRARY, key, entry);
        }
    return sum;
}

void modules_context_gone(uint64_t context, uint64_t serial) {
    struct owned entry;
    uint64_t key;
    for (uint64_t at = 0; any && owned_next(OWNED_LIBRARY, &at, &key, &entry);)
        if (entry.device >= 0 && entry.owner == context &&
            owned_take_older(OWNED_LIBRARY, key, serial, &entry)) {
            charge_return(entry.device, entry.bytes);
            entry.device = -1;
            entry.owner = 0;
            libraries++;
            owned_put(OWNED_LIBRARY, key, entry);
        }
}
