/* For the assembly in dlopen_<machine>.S alone. */
#ifndef GPUCAP_DLOPEN_H
#define GPUCAP_DLOPEN_H

#include <stdint.h>

struct corrected {
    void *next;         /* the function to jump to; NULL: there is none, which cannot happen */
    uintptr_t argument; /* the flags of dlopen, or the list of dlmopen */
};

struct corrected gpucap_dlopen(const char *file, int flags);
struct corrected gpucap_dlmopen(intptr_t list, const char *file, int *flags);

#endif
