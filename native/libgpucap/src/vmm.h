/* Memory that is charged for a descriptor. */
#ifndef GPUCAP_VMM_H
#define GPUCAP_VMM_H

#include <stdbool.h>

/* Gives back what was charged for descriptors that are closed by now; false: nothing. */
bool vmm_look_for_closed(void);

/* This process is a forked child. */
void vmm_forget(void);

#endif
