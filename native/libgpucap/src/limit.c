#include "limit.h"

#include "lock.h"
#include "log.h"
#include "os.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB                (1024u * 1024u)
#define MIB_MOST           (1u << 30) /* a pebibyte: more is a mistake */
#define CHECK_MILLISECONDS 100u
#define CONTEXT_MIB        512u
#define DEFAULT_FILE       "/etc/gpu-scheduler/memory-limit-mib"
#define VARIABLE           "GPU_MEMORY_LIMIT_MIB"

static struct {
    struct lock lock;
    _Atomic(uint64_t) next_check; /* milliseconds; 0: never checked */
    _Atomic(uint64_t) bytes;
    struct stat seen; /* of the file when it was read */
    bool seen_any;
} state = {.bytes = LIMIT_NONE};

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
    const char *file = getenv("GPUCAP_LIMIT_FILE");
    return file && *file ? file : DEFAULT_FILE;
}

static bool from_file(const char *path, uint64_t *bytes) {
    char text[64], quoted[48];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        log_once("memory limit: cannot open %s (error %d); the environment's " VARIABLE " holds",
                 path, errno);
        return false;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    if (limit_parse(text, bytes))
        return true;
    quote(text, quoted);
    log_once("memory limit: %s holds \"%s\", not a number of MiB from 1 to %u; the "
             "environment's " VARIABLE " holds",
             path, quoted, MIB_MOST);
    return false;
}

static bool from_environment(uint64_t *bytes) {
    char quoted[48];
    const char *text = getenv(VARIABLE);
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

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void refresh(void) {
    struct stat now = {0};
    const char *path = limit_file();
    bool present = os_stat(path, &now) == 0;
    if (state.seen_any && same_file(&now, &state.seen))
        return; /* a missing file is all zeros, like the one before */
    uint64_t bytes = LIMIT_NONE;
    if (!(present && from_file(path, &bytes)) && !from_environment(&bytes))
        bytes = LIMIT_NONE;
    state.seen = now;
    state.seen_any = true;
    state.bytes = bytes;
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

uint64_t limit_context_bytes(void) {
    /* 512 MiB is what a context with its first modules takes on the data-centre GPUs of today (some
     * 400 to 550 MiB), so a program that fills what it sees as free stays within the cap as NVML
     * counts it; an eighth keeps a small cap usable. The agent replaces the figure within seconds.
     */
    const char *text = getenv("GPUCAP_CONTEXT_MIB");
    uint64_t bytes = (uint64_t)CONTEXT_MIB * MIB, cap = limit_bytes();
    if (text && text[0] == '0' && !text[1])
        return 0;
    if (text && limit_parse(text, &bytes))
        return bytes;
    return cap == LIMIT_NONE ? bytes : bytes < cap / 8 ? bytes : cap / 8;
}
