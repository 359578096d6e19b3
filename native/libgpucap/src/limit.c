#include "limit.h"

#include "lock.h"
#include "log.h"
#include "os.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB                (1024u * 1024u)
#define MIB_MOST           (1u << 30) /* a pebibyte: more is a mistake */
#define CHECK_MILLISECONDS 100u
#define MOST_OF_CONTEXT    ((uint64_t)512 * MIB)
#define VARIABLE           "GPU_MEMORY_LIMIT_MIB"

static struct {
    struct lock lock;
    _Atomic(uint64_t) next_check; /* milliseconds; 0: never checked */
    _Atomic(uint64_t) bytes;
    struct stat seen; /* of the file that `file_bytes` was read from */
    uint64_t file_bytes;
    bool known; /* `file_bytes` is what some file said; it is kept while none can be read */
} state = {.bytes = LIMIT_REFUSE};

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool limit_parse(const char *text, uint64_t *bytes) {
    uint64_t mib = 0;
    while (is_blank(*text))
        text++;
    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        mib = mib * 10 + (uint64_t)(*text - '0');
        if (mib > MIB_MOST)
            return false;
    }
    while (is_blank(*text))
        text++;
    if (*text || mib == 0)
        return false;
    *bytes = mib * MIB;
    return true;
}

/* For the log: what somebody wrote, without what would break the line. */
static void quote(const char *text, char out[48]) {
    unsigned i = 0;
    for (; text[i] && i < 40; i++)
        out[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    out[i] = 0;
}

static const char *limit_file(void) {
    const char *file = settings_override("GPUCAP_LIMIT_FILE");
    return file ? file : SETTINGS_LIMIT_FILE;
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads what is in the file into `state`; false: it holds no limit, or could not be read. */
static bool read_file(const char *path, const char *then) {
    char text[64], quoted[48];
    struct stat seen;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = -1;
    int error = errno;
    if (fd >= 0) {
        bool known = os_fstat(fd, &seen) == 0;
        length = known ? read(fd, text, sizeof text - 1) : -1;
        error = errno;
        close(fd);
    }
    if (length < 0) {
        log_once("memory limit: cannot read %s (error %d); %s", path, error, then);
        return false;
    }
    text[length] = 0;
    if (!limit_parse(text, &state.file_bytes)) {
        quote(text, quoted);
        log_once("memory limit: %s holds \"%s\", not a number of MiB from 1 to %u; %s", path,
                 quoted, MIB_MOST, then);
        return false;
    }
    state.seen = seen;
    state.known = true;
    return true;
}

static bool from_environment(uint64_t *bytes) {
    char quoted[48];
    const char *text = secure_getenv(VARIABLE);
    if (!text)
        return false;
    if (limit_parse(text, bytes))
        return true;
    quote(text, quoted);
    log_once("memory limit: " VARIABLE
             " is \"%s\", not a number of MiB from 1 to %u; no cap from it",
             quoted, MIB_MOST);
    return false;
}

/* The lesser of file and environment. A file that is there and cannot be understood leaves what the
 * last one said; before there was one nothing is given out. */
static void refresh(void) {
    struct stat now;
    const char *path = limit_file();
    bool present = os_stat(path, &now) == 0;
    if (!present && os_absent(errno)) {
        if (state.known)
            log_once("memory limit: %s is gone; the last limit stays", path);
    } else if (!present || !state.known || !same_file(&now, &state.seen)) {
        const char *then = state.known ? "the last limit stays" : "nothing is given out";
        if (!read_file(path, then) && !state.known) {
            state.bytes = LIMIT_REFUSE;
            return;
        }
    }
    uint64_t bytes = LIMIT_NONE;
    from_environment(&bytes);
    state.bytes = state.known && state.file_bytes < bytes ? state.file_bytes : bytes;
}

uint64_t limit_bytes(void) {
    uint64_t now = os_milliseconds() + 1, next = state.next_check;
    if (now < next)
        return state.bytes;
    lock_take(&state.lock);
    if (state.next_check == next) {
        int kept_errno = errno;
        refresh();
        errno = kept_errno;
        state.next_check = now + CHECK_MILLISECONDS;
    }
    lock_free(&state.lock);
    return state.bytes;
}

void limit_forget(void) {
    state.lock = (struct lock){0}; /* what the limit is holds for the child too */
}

/* What the agent measured on this device before; 0: nothing yet. */
static uint64_t measured(void) {
    char text[64];
    uint64_t bytes;
    const char *path = settings_override("GPUCAP_CONTEXT_FILE");
    int kept_errno = errno,
        fd = open(path ? path : SETTINGS_CONTEXT_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    errno = kept_errno;
    text[length < 0 ? 0 : length] = 0;
    return limit_parse(text, &bytes) && bytes < MOST_OF_CONTEXT ? bytes : 0;
}

void limit_say_context(uint64_t bytes) {
    uint64_t cap = limit_bytes();
    if (bytes && cap != LIMIT_NONE && bytes > cap / 2)
        log_once(
            "contexts: one takes some %u MiB of this device: a cap of %u MiB holds %u of them, "
            "in all its processes together",
            (unsigned)(bytes / MIB), (unsigned)(cap / MIB), (unsigned)(cap / bytes));
}

uint64_t limit_context_bytes(uint64_t seen, uint64_t *most) {
    /* 512 MiB is what a context with its first modules takes on the data-centre GPUs of today (some
     * 400 to 550 MiB), so a program that fills what it sees as free stays within the cap as NVML
     * counts it; an eighth keeps a small cap usable as long as nobody knows better: what such a
     * context took is measured once it is there. The agent replaces the figure within seconds, and
     * tells later containers what it saw. What was measured is charged, whatever the cap: it holds
     * as many contexts as fit.
     */
    const char *text = settings_override("GPUCAP_CONTEXT_MIB");
    uint64_t bytes, cap = limit_bytes();
    *most = 0;
    if (text && text[0] == '0' && !text[1])
        return 0;
    if (text && limit_parse(text, &bytes))
        return bytes;
    seen = seen < MOST_OF_CONTEXT ? seen : MOST_OF_CONTEXT;
    bytes = measured();
    limit_say_context(bytes);
    if (!bytes) {
        bytes = cap == LIMIT_NONE || cap / 8 > MOST_OF_CONTEXT ? MOST_OF_CONTEXT : cap / 8;
        *most = cap != LIMIT_NONE && (!seen || seen == bytes) ? MOST_OF_CONTEXT - bytes : 0;
    }
    return bytes > seen ? bytes : seen;
}
