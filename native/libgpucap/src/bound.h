/* Memory that is kept by what it is bound to or mapped into. */
#ifndef GPUCAP_BOUND_H
#define GPUCAP_BOUND_H

#include <stdint.h>

/* The object or array with this serial is gone, and with it what was bound to it. */
void bound_target_gone(uint64_t serial);

/* The same for the arrays of a context that were made before `serial`. */
void bound_context_gone(uint64_t context, uint64_t serial);

/* This process is a forked child. */
void bound_forget(void);

#endif
