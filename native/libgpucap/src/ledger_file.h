/* Opening the ledger file, making it when it is not there, and the mutex in it. */
#ifndef GPUCAP_LEDGER_FILE_H
#define GPUCAP_LEDGER_FILE_H

#include "ledger.h"

#include <sys/stat.h>

struct ledger_mapping {
    struct ledger_file *file; /* NULL: none */
    dev_t volume;             /* which file it is: its device and inode */
    ino_t inode;
    blkcnt_t blocks; /* what it had of the disk; less: somebody has made holes */
    int descriptor;  /* open for the sake of the lock on it; a program may have closed it since */
};

enum ledger_answer {
    LEDGER_USABLE,
    LEDGER_NOWHERE, /* there is no state folder, and no container of the scheduler's: nobody
                     * to share a cap with */
    LEDGER_AWAY     /* it cannot be used now, as the log says; memory is refused meanwhile */
};

/* Maps the ledger of the state folder; made when it is not there, and made anew, with a line in the
 * log, where what is there is none. */
enum ledger_answer ledger_open(struct ledger_mapping *out);
void ledger_close(struct ledger_mapping *mapping);

/* The same, but leaves the descriptor open: in a forked child, whose parent's locks it keeps. */
void ledger_leave_open(struct ledger_mapping *mapping);

/* The file on disk is still the one that is mapped, whole. */
bool ledger_is_current(const struct ledger_mapping *mapping);

/* Opens the file again if the program has closed the descriptor, or uses its number for something
 * else; true: it did, and what was locked by it is not any more. */
bool ledger_reopened(struct ledger_mapping *mapping);

/* false: somebody has held it for so long (a tenth of the time if `impatient`), or it is broken.
 * What it guards must not be changed then, but for this process's own slot. */
bool ledger_lock(struct ledger_file *file, bool impatient);
void ledger_unlock(struct ledger_file *file);

/* Puts a new ledger in the place of one that no living process uses, nor a dead one's children
 * keep, and whose lock is taken all the same: the machine lost its power while somebody held it.
 * false: somebody uses it. */
bool ledger_replace_dead(const struct ledger_mapping *mapping);

#endif
