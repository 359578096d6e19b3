/* Memory that is kept by what it is bound to or mapped into. */
#ifndef GPUCAP_BOUND_H
#define GPUCAP_BOUND_H

#include <stdint.h>

/* The arrays of a context that were made before `serial` are gone, and what was bound to them. */
void bound_context_gone(uint64_t context, uint64_t serial);

#endif
