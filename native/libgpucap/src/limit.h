/*
 * The cap: bytes of each device that the container may hold.
 *
 * The lesser of the file that follows the pod's annotation and the environment; looked at again at
 * most every 100 ms. A file that is there and cannot be read or understood is reported once: the
 * last limit stays, and where there was none nothing is given out. Garbage in the environment is
 * reported and passed over; with neither file nor environment there is no cap.
 */
#ifndef GPUCAP_LIMIT_H
#define GPUCAP_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LIMIT_NONE   UINT64_MAX
#define LIMIT_REFUSE 0u /* nothing is given out */

uint64_t limit_bytes(void);

/* Reads a cap in MiB, 1 to 2^30 with blanks around it; false: it is none. */
bool limit_parse(const char *text, uint64_t *bytes);

/* This process is a forked child: another thread of its parent may have had the lock. */
void limit_forget(void);

/* What a context is taken to need until the agent has measured it; `seen`: what was measured of
 * others in this container, 0 where nothing was. *most: what it may turn out to take, for who made
 * one; 0: that is known. */
uint64_t limit_context_bytes(uint64_t seen, uint64_t *most);

/* A context was measured: says once how many the cap holds, where that is one or none. */
void limit_say_context(uint64_t bytes);

#endif
