/*
 * Modules and libraries. One costs what the configuration says and what its image declares, from
 * the moment it is loaded: "the CUDA driver API does not attempt to lazily allocate the resources
 * needed by a module; if the memory for functions and data (constant and global) needed by the
 * module cannot be allocated, cuModuleLoad() fails" ("Module Management"). It goes with its context
 * ("Context Management", cuCtxDestroy: "these resources include CUDA types CUmodule, ...").
 *
 * A library that is loaded without a context costs nothing until a kernel of it is asked for in one
 * ("Library Management", cuLibraryLoadData).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGE_READS_COMPRESSED 1
#include "cuda_image.h"
#include "process.h"

struct CUmod_st {
    CUcontext context; /* NULL: it is loaded into none, or that is gone */
    uint64_t bytes;
    bool library;
    struct CUmod_st *next;
};

static CUmodule modules;

void fg_modules_drop(CUcontext context, bool charged) {
    for (CUmodule module = modules; module; module = module->next) {
        if (!module->context || (context && module->context != context)) {
            continue;
        }
        if (charged) {
            fg_give(&fg.device[module->context->device], FG_MODULE, module->bytes);
        }
        module->context = NULL;
    }
}

static uint64_t cost(uint64_t variables) {
    return fg.state.config.module + fg_round_up(variables, fg.state.config.granularity);
}

/* Of the image in a file; one that cannot be read has none. */
static uint64_t variables_in(const char *path) {
    struct stat status;
    uint64_t found = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && !fstat(file, &status) && status.st_size > 0) {
        size_t length = (size_t)status.st_size;
        void *map = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
        if (map != MAP_FAILED) {
            found = cuda_image_within(map, length).bytes;
            munmap(map, length);
        }
    }
    if (file >= 0) {
        close(file);
    }
    return found;
}

static CUresult put(CUmodule module, Device *device) {
    if (!fg_take(device, FG_MODULE, module->bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->context = fg_current();
    return CUDA_SUCCESS;
}

/* With the driver's mutex; `device`: of the current context, NULL without one. */
static CUresult load(CUmodule *module, Device *device, uint64_t variables, bool library) {
    CUmodule made = calloc(1, sizeof *made);
    FG_REQUIRE(made, CUDA_ERROR_OUT_OF_MEMORY);
    made->library = library;
    made->bytes = variables > UINT64_MAX / 2 ? variables : cost(variables);
    CUresult result = device ? put(made, device) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) {
        free(made);
        return fg_leave(result);
    }
    made->next = modules;
    modules = made;
    *module = made;
    return fg_leave(CUDA_SUCCESS);
}

static CUresult load_module(CUmodule *module, const void *image) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(module && image, CUDA_ERROR_INVALID_VALUE);
    return load(module, device, cuda_image(image).bytes, false);
}
FG_FORWARD(cuModuleLoadData, (CUmodule * module, const void *image), load_module(module, image))
FG_FORWARD(cuModuleLoadDataEx,
           (CUmodule * module, const void *image, unsigned int count, int *options, void **values),
           load_module(module, image))
FG_FORWARD(cuModuleLoadFatBinary, (CUmodule * module, const void *image),
           load_module(module, image))

CUresult cuModuleLoad(CUmodule *module, const char *path) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(module && path, CUDA_ERROR_INVALID_VALUE);
    return load(module, device, variables_in(path), false);
}

static CUresult load_library(CUlibrary *library, const void *image, const char *path) {
    FG_ENTER();
    FG_REQUIRE(library && (image || path), CUDA_ERROR_INVALID_VALUE);
    CUcontext context = fg_alive(fg_current()) ? fg_current() : NULL;
    uint64_t variables = image ? cuda_image(image).bytes : variables_in(path);
    return load((CUmodule *)library, context ? &fg.device[context->device] : NULL, variables, true);
}
FG_FORWARD(cuLibraryLoadData,
           (CUlibrary * library, const void *image, int *jit, void **jit_values,
            unsigned int jit_count, int *options, void **values, unsigned int count),
           load_library(library, image, NULL))
FG_FORWARD(cuLibraryLoadFromFile,
           (CUlibrary * library, const char *path, int *jit, void **jit_values,
            unsigned int jit_count, int *options, void **values, unsigned int count),
           load_library(library, NULL, path))

static CUresult unload(CUmodule module) {
    FG_ENTER();
    FG_REQUIRE(module, CUDA_ERROR_INVALID_HANDLE);
    CUmodule *link = &modules;
    while (*link && *link != module) {
        link = &(*link)->next;
    }
    FG_REQUIRE(*link, CUDA_ERROR_INVALID_HANDLE);
    *link = module->next;
    if (module->context) {
        fg_give(&fg.device[module->context->device], FG_MODULE, module->bytes);
    }
    free(module);
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuModuleUnload, (CUmodule module), unload(module))
FG_FORWARD(cuLibraryUnload, (CUlibrary library), unload((CUmodule)library))

static CUresult lookup(void **found, void *owner, const char *name) {
    FG_ENTER();
    FG_REQUIRE(found && owner && name, CUDA_ERROR_INVALID_VALUE);
    *found = owner; /* a kernel that does nothing needs no more */
    return fg_leave(CUDA_SUCCESS);
}
FG_FORWARD(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
           lookup((void **)function, module, name))
FG_FORWARD(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
           lookup((void **)kernel, library, name))

/* A library that no context has yet is loaded into the current one. */
static CUresult use(CUmodule module, Device *device) {
    CUmodule known = modules;
    while (known && known != module) {
        known = known->next;
    }
    return known && known->library && !known->context ? put(known, device) : CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    FG_ENTER_CONTEXT(device);
    FG_REQUIRE(function && kernel, CUDA_ERROR_INVALID_VALUE);
    *function = (CUfunction)kernel;
    return fg_leave(use((CUmodule)kernel, device));
}

static CUresult launch(CUfunction function) {
    FG_ENTER_CONTEXT(device);
    return fg_leave(function ? use((CUmodule)function, device) : CUDA_ERROR_INVALID_HANDLE);
}
FG_FORWARD(cuLaunchKernel,
           (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
            unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
            void **parameters, void **extra),
           launch(function))
FG_FORWARD(cuLaunchKernel_ptsz,
           (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
            unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
            void **parameters, void **extra),
           launch(function))
