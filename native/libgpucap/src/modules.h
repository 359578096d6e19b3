/* What modules and libraries hold for their variables. */
#ifndef GPUCAP_MODULES_H
#define GPUCAP_MODULES_H

#include <stdint.h>

/* What libraries that no context has yet will take of the next one. */
uint64_t modules_pending(void);

/* It is there, and that is charged: what of it is that context's, which may be less or more. */
uint64_t modules_adopted(uint64_t context, int device);

/* A context is gone, and with it what was loaded into it before `serial`; libraries stay. */
void modules_context_gone(uint64_t context, uint64_t serial);

#endif
