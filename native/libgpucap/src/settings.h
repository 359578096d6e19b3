/*
 * Variables that move or set what the scheduler decides: for tests, and machines without a
 * container.
 *
 * Where the scheduler has put its limit file they do not exist: a line in a pod's env, or a program
 * that sets them for its children, would otherwise choose its own cap. Nor do they exist for a
 * program with more rights than its caller.
 */
#ifndef GPUCAP_SETTINGS_H
#define GPUCAP_SETTINGS_H

#include <stdbool.h>

#define SETTINGS_LIMIT_FILE   "/etc/gpu-scheduler/memory-limit-mib"
#define SETTINGS_CONTEXT_FILE "/etc/gpu-scheduler/context-mib"

/* This is a container of the scheduler's, as far as was seen: its limit file was there, or might
 * have been. It stays so when the process leaves it by chroot. */
bool settings_managed(void);

/* The variable's text; NULL: it is not there, is empty, or does not count. */
const char *settings_override(const char *name);

#endif
