/*
 * Where functions are: symbols of the objects that are loaded into this process.
 *
 * Done by reading the objects' own symbol tables, not by dlsym, where that has side effects: a
 * lookup that fails leaves an error text for the program's next dlerror(), and may allocate memory
 * inside a memory allocator that is asking dlsym for its own functions.
 */
#ifndef GPUCAP_RESOLVE_H
#define GPUCAP_RESOLVE_H

#include <stdbool.h>

typedef void *dlsym_function(void *handle, const char *symbol);

/* The dlsym after ours: of the next preloaded library that has one, or libc's. */
dlsym_function *resolve_next_dlsym(void);

/* A function of libc or, before glibc 2.34, of libdl or libpthread; NULL when not loaded. */
void *resolve_libc(const char *symbol);

/* A function of the driver library (libcuda for "cu…", libnvidia-ml for "nvml…"); NULL likewise.
 * The second: of one that has the driver's name, and so is no program with functions like it. */
void *resolve_driver(const char *symbol);
void *resolve_named_driver(const char *symbol);

/* A function of this name in any object, other than this one. */
void *resolve_elsewhere(const char *symbol, const void *except);

/* How many objects were ever closed in this process. */
unsigned long long resolve_closed(void);

/* An object with this file name is loaded. */
bool resolve_loaded(const char *name);

/* The address lies in the driver library that a symbol of this name belongs to. */
bool resolve_in_driver(const char *symbol, const void *address);

#endif
