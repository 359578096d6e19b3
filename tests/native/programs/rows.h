/*
 * One row per way to get device memory: how to take a piece of so many bytes,
 * and how to give the last one back. The functions are called through pointers
 * that a resolver has filled in, so the same rows run linked, through dlopen,
 * through ctypes and through cuGetProcAddress.
 */
#ifndef ROWS_H
#define ROWS_H

#include "cuda_abi.h"

#include <stdbool.h>

#define CUDA_FUNCTION(symbol, name, since, stream, parameters)                                     \
    extern __typeof__(&symbol) p_##symbol;
#define CUDA_ALIAS(symbol, name, since, stream)
#include "cuda_functions.def"
#undef CUDA_FUNCTION
#undef CUDA_ALIAS

struct row {
    const char *name;
    CUresult (*take)(size_t bytes); /* one more piece; remembers what is needed to
                                       give it back */
    CUresult (*drop)(void);         /* the last piece */
};

extern const struct row rows[];
const struct row *find_row(const char *name);

/* Fills the pointers: by(symbol, name, version, flags, context) is asked for
 * each. */
typedef void *resolver(const char *symbol, const char *name, int version, unsigned long long flags);
bool resolve_all(resolver *by);

/* Takes pieces of so many bytes until the driver refuses: how many, and its
 * answer. */
long take_until_refused(const char *row, size_t bytes, long most, int *answer);

#endif
