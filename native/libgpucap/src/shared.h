/*
 * The ledger's table of memory that several processes of the container hold. All of it under the
 * ledger's lock. A process may stand there more than once.
 */
#ifndef GPUCAP_SHARED_H
#define GPUCAP_SHARED_H

#include "ledger.h"

/* NULL: not there. */
struct ledger_shared *shared_find(struct ledger_file *file, uint64_t id);

/* The slot holds it and is charged for it; false: the table is full. */
bool shared_make(struct ledger_file *file, unsigned slot, struct ledger_shared memory);

/* One more holder; true: it pays from now on, for nobody did. */
bool shared_join(struct ledger_shared *shared, unsigned slot, bool *joined);

/* One holder less; true: it was the one who paid, and no longer does. The next one is charged. */
bool shared_leave(struct ledger_file *file, struct ledger_shared *shared, unsigned slot);

/* The slot's process is gone: what it paid for, the next holders do. */
void shared_slot_gone(struct ledger_file *file, unsigned slot);

#endif
