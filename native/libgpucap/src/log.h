/*
 * What went wrong, one line once, in libgpucap.log of the state folder. Never on stdout or stderr,
 * which belong to the program; but on stderr where that folder is there, or a container of the
 * scheduler's has none, and the line cannot be written.
 */
#ifndef GPUCAP_LOG_H
#define GPUCAP_LOG_H

/* The line is written unless this process wrote it before, or it is in the file already. */
void log_once(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* This process is a forked child: another thread of its parent may have had the lock. */
void log_forget(void);

/* The folder with the ledger and the log: GPUCAP_STATE_DIR, or that of a container. */
const char *state_folder(void);

#endif
