/* What is in the file of a library that is about to be loaded. */
#ifndef GPUCAP_OBJECTS_H
#define GPUCAP_OBJECTS_H

#include <stdbool.h>

/* Whether a name, or the last part of a path, is one that the driver goes by. */
bool objects_is_driver_name(const char *name);

/* Whether loading it apart from the others may bring the driver in behind us: it is the driver, it
 * looks for functions by itself, or it needs a library of which that is true. `apart`: what is
 * loaded already is loaded once more for it. */
bool objects_bring_driver(const char *file, bool apart);

#endif
