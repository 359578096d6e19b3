/* Memory of another process, by its IPC handle. */
#ifndef GPUCAP_IPC_H
#define GPUCAP_IPC_H

#include <stdint.h>

/* A context is gone: what was shared in it, or opened, before `serial` is let go. */
void ipc_context_gone(uint64_t context, uint64_t serial);

#endif
