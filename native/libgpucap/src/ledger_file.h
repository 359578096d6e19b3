/* Opening the ledger file, making it when it is not there, and the mutex in it. */
#ifndef GPUCAP_LEDGER_FILE_H
#define GPUCAP_LEDGER_FILE_H

#include "ledger.h"

#include <sys/stat.h>

struct ledger_mapping {
    struct ledger_file *file; /* NULL: none */
    dev_t volume;             /* which file it is: its device and inode */
    ino_t inode;
    int descriptor; /* open for the sake of the lock on it; a program may have closed it since */
};

/* Maps the ledger of the state folder. false, with the reason in the log: it cannot be used. */
bool ledger_open(struct ledger_mapping *out);
void ledger_close(struct ledger_mapping *mapping);

/* The file on disk is still the one that is mapped, whole. */
bool ledger_is_current(const struct ledger_mapping *mapping);

/* false: the mutex is broken or was held for five seconds; the ledger must not be used any more. */
bool ledger_lock(struct ledger_file *file);
void ledger_unlock(struct ledger_file *file);

#endif
