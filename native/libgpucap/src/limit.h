/*
 * The cap: bytes of each device that the container may hold.
 *
 * From the file that follows the pod's annotation, else from the environment; looked at again at
 * most every 100 ms. A source with garbage in it is reported once and passed over; with no source
 * there is no cap.
 */
#ifndef GPUCAP_LIMIT_H
#define GPUCAP_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMIT_NONE UINT64_MAX

uint64_t limit_bytes(void);

/* Reads a cap in MiB, 1 to 2^30 with blanks around it; false: it is none. */
bool limit_parse(const char *text, uint64_t *bytes);

/* What a context is taken to need until the agent has measured it. */
uint64_t limit_context_bytes(void);

#endif
