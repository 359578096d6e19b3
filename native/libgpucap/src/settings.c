#include "settings.h"

#include "os.h"

#include <stdatomic.h>
#include <stdlib.h>

bool settings_managed(void) {
    enum { UNKNOWN, NO, YES };
    static _Atomic(int) known = UNKNOWN; /* what cannot be found out counts as there */
    if (known == UNKNOWN) {
        struct stat status;
        int kept_errno = errno;
        bool absent = os_stat(SETTINGS_LIMIT_FILE, &status) != 0 && os_absent(errno);
        known = absent ? NO : YES;
        errno = kept_errno;
    }
    return known == YES;
}

const char *settings_override(const char *name) {
    const char *text = secure_getenv(name);
    return text && *text && !settings_managed() ? text : NULL;
}
