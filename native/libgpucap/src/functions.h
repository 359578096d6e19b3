/*
 * The driver's functions by number: the driver's own pointer of each, and our hook for it.
 *
 * DRIVER(cuMemAlloc_v2)(&pointer, bytes) calls the driver's function, or whichever comes next in
 * the chain of preloaded libraries; when there is no driver it answers "not found". It is found at
 * the first use: nothing of this runs in a program that never asks for a CUDA or NVML symbol. It is
 * found anew after any library was closed, for that may have been the driver.
 */
#ifndef GPUCAP_FUNCTIONS_H
#define GPUCAP_FUNCTIONS_H

#include "cuda_abi.h"
#include "nvml_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum function {
#define HOOK(symbol) FUNCTION_##symbol,
#define CALL(symbol) FUNCTION_##symbol,
#include "functions.def"
#undef HOOK
#undef CALL
    FUNCTION_COUNT
};

/* What the driver exports under this name, or the stand-in; kept once found. */
extern _Atomic(void *) function_driver[FUNCTION_COUNT];
void *function_find_driver(enum function function);

static inline void *function_real(enum function function) {
    void *known = atomic_load_explicit(&function_driver[function], memory_order_acquire);
    return known ? known : function_find_driver(function);
}

#define DRIVER(symbol) ((__typeof__(&symbol))function_real(FUNCTION_##symbol))

/* The driver's own, whatever stands before it in the chain: for who calls our hook from inside a
 * call of ours may be what comes next there. */
extern _Atomic(void *) function_itself[FUNCTION_COUNT];
void *function_find_itself(enum function function);

static inline void *function_own(enum function function) {
    void *known = atomic_load_explicit(&function_itself[function], memory_order_acquire);
    return known ? known : function_find_itself(function);
}

#define DRIVER_ITSELF(symbol) ((__typeof__(&symbol))function_own(FUNCTION_##symbol))

/* At the beginning of each call of the program, before the first DRIVER(), and before a library is
 * loaded: the driver may come to lie where the last one was. */
void function_check_closed(void);

/* Grows when that found another driver: what was learned of the last one may not hold for it. */
extern _Atomic(unsigned) function_drivers;

/* How many of CUDA's were closed: handles and pointers of theirs may be something else's now. */
extern _Atomic(unsigned) function_closed_drivers;

bool function_exists(enum function function);         /* the driver is loaded and has it */
const char *function_name(enum function function);    /* its symbol */
void *function_hook(enum function function);          /* our hook; NULL: only called */
enum function function_by_symbol(const char *symbol); /* FUNCTION_COUNT: not one of ours */

/* Remembers what dlsym or cuGetProcAddress gave for the function, if nothing is known yet. */
void function_learn(enum function function, void *pointer);

#endif
