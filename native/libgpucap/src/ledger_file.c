#include "ledger_file.h"

#include "fault.h"
#include "log.h"
#include "os.h"
#include "resolve.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#define LOCK_SECONDS 5

/* libc's pthread functions, found at first use: before glibc 2.34 they are in libpthread, which the
 * library does not depend on and every program with CUDA has loaded. */
static struct {
    _Atomic(bool) known;
    int (*init)(pthread_mutex_t *, const pthread_mutexattr_t *);
    int (*trylock)(pthread_mutex_t *);
    int (*timedlock)(pthread_mutex_t *, const struct timespec *);
    int (*unlock)(pthread_mutex_t *);
    int (*consistent)(pthread_mutex_t *);
    int (*attr_init)(pthread_mutexattr_t *);
    int (*attr_setpshared)(pthread_mutexattr_t *, int);
    int (*attr_setrobust)(pthread_mutexattr_t *, int);
} threads;

static bool find_threads(void) {
    if (threads.known)
        return true;
    *(void **)&threads.init = resolve_libc("pthread_mutex_init");
    *(void **)&threads.trylock = resolve_libc("pthread_mutex_trylock");
    *(void **)&threads.timedlock = resolve_libc("pthread_mutex_timedlock");
    *(void **)&threads.unlock = resolve_libc("pthread_mutex_unlock");
    *(void **)&threads.consistent = resolve_libc("pthread_mutex_consistent");
    *(void **)&threads.attr_init = resolve_libc("pthread_mutexattr_init");
    *(void **)&threads.attr_setpshared = resolve_libc("pthread_mutexattr_setpshared");
    *(void **)&threads.attr_setrobust = resolve_libc("pthread_mutexattr_setrobust");
    threads.known = threads.init && threads.trylock && threads.timedlock && threads.unlock &&
                    threads.consistent && threads.attr_init && threads.attr_setpshared &&
                    threads.attr_setrobust;
    return threads.known;
}

bool ledger_lock(struct ledger_file *file) {
    pthread_mutex_t *mutex = &file->header.mutex;
    int error = threads.trylock(mutex);
    if (error == EBUSY) {
        /* A holder that is stopped (a debugger, a frozen cgroup) must not stop its neighbours. */
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LOCK_SECONDS;
        error = threads.timedlock(mutex, &until);
    }
    if (error == EOWNERDEAD) {
        /* The holder died. Every field is one aligned word and the dead process's slot is reaped by
         * whoever needs its memory: there is nothing to repair. */
        FAULT(recover);
        error = threads.consistent(mutex);
    }
    if (error)
        log_once("ledger: its lock cannot be taken (error %d); this process counts for itself",
                 error);
    return error == 0;
}

void ledger_unlock(struct ledger_file *file) {
    threads.unlock(&file->header.mutex);
}

static bool write_zeros(int fd) {
    static const char zeros[4096];
    for (off_t at = 0; at < (off_t)sizeof(struct ledger_file); at += sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, at) != sizeof zeros)
            return false;
    return true;
}

static struct ledger_file *map(int fd) {
    void *file = mmap(NULL, sizeof(struct ledger_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return file == MAP_FAILED ? NULL : file;
}

/* Makes the file's content, under the file's lock. It is written, not merely sized: on a full disk
 * the error comes here and not as a signal when a page is first touched. The magic comes last, so a
 * maker that is killed leaves zeros, and the next one begins again. */
static bool make(int fd) {
    fchmod(fd, 0666); /* whatever the umask: the container's other users share the ledger */
    FAULT(make_empty);
    if (!write_zeros(fd))
        return false;
    FAULT(make_zeros);
    struct ledger_file *file = map(fd);
    if (!file)
        return false;
    struct ledger_header *header = &file->header;
    pthread_mutexattr_t attributes;
    threads.attr_init(&attributes);
    threads.attr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    threads.attr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    threads.init(&header->mutex, &attributes);
    header->version = LEDGER_VERSION;
    header->header_bytes = sizeof *header;
    header->slot_bytes = sizeof(struct ledger_slot);
    header->slot_count = LEDGER_SLOTS;
    header->device_count = LEDGER_DEVICES;
    header->mutex_bytes = sizeof(pthread_mutex_t);
    FAULT(make_header);
    typedef uint64_t __attribute__((may_alias)) word;
    static_assert(sizeof LEDGER_MAGIC == sizeof(word), "one store");
    __atomic_store_n((word *)header->magic, *(const word *)LEDGER_MAGIC, __ATOMIC_RELEASE);
    FAULT(make_magic);
    munmap(file, sizeof *file);
    return true;
}

/* Why the file cannot be used; NULL: it can. Empty text: it was begun and not finished. */
static const char *fault_of(int fd) {
    struct stat status;
    struct ledger_header header;
    if (os_fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return "it is not a regular file";
    memset(&header, 0, sizeof header);
    ssize_t length = pread(fd, &header, sizeof header, 0);
    if (length < 0)
        return "it cannot be read";
    static const char none[sizeof header.magic];
    if (memcmp(header.magic, none, sizeof none) == 0)
        return status.st_size <= (off_t)sizeof(struct ledger_file) ? "" : "it is not a ledger";
    if (memcmp(header.magic, LEDGER_MAGIC, sizeof header.magic) != 0)
        return "it is not a ledger";
    if (header.version != LEDGER_VERSION || header.header_bytes != sizeof header ||
        header.slot_bytes != sizeof(struct ledger_slot) || header.slot_count != LEDGER_SLOTS ||
        header.device_count != LEDGER_DEVICES || header.mutex_bytes != sizeof(pthread_mutex_t))
        return "it is of another version";
    return status.st_size == (off_t)sizeof(struct ledger_file) ? NULL : "it is truncated";
}

static void complain(const char *path, const char *reason, int error) {
    log_once("ledger: %s: %s (error %d); each process has the whole cap for itself", path, reason,
             error);
}

static bool path_of(char path[4096]) {
    return (size_t)snprintf(path, 4096, "%s/" LEDGER_FILE, state_folder()) < 4096;
}

bool ledger_open(struct ledger_mapping *out) {
    char path[4096];
    *out = (struct ledger_mapping){0};
    if (!path_of(path))
        return false;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        complain(path, "it cannot be opened", errno);
        return false;
    }
    const char *fault = find_threads() ? fault_of(fd) : "libc has no robust mutexes";
    int error = 0;
    if (fault && !*fault) {
        flock(fd, LOCK_EX);
        fault = fault_of(fd); /* somebody else may have made it in the meantime */
        if (fault && !*fault) {
            if (!make(fd)) {
                fault = "it cannot be written";
                error = errno;
                /* Not to keep what little room there is; the next process tries again. */
                if (ftruncate(fd, 0) != 0)
                    fault = "it cannot be written, nor emptied";
            } else {
                fault = NULL;
            }
        }
        flock(fd, LOCK_UN);
    }
    struct stat status;
    if (!fault && (os_fstat(fd, &status) != 0 || !(out->file = map(fd)))) {
        fault = "it cannot be mapped";
        error = errno;
    }
    if (fault) {
        close(fd);
        complain(path, fault, error);
        return false;
    }
    out->volume = status.st_dev;
    out->inode = status.st_ino;
    out->descriptor = fd;
    return true;
}

void ledger_close(struct ledger_mapping *mapping) {
    struct stat status;
    if (mapping->file) {
        munmap(mapping->file, sizeof *mapping->file);
        /* Only if it is still ours: programs close and reuse descriptors they do not know. */
        if (os_fstat(mapping->descriptor, &status) == 0 && status.st_ino == mapping->inode &&
            status.st_dev == mapping->volume)
            close(mapping->descriptor);
    }
    *mapping = (struct ledger_mapping){0};
}

bool ledger_is_current(const struct ledger_mapping *mapping) {
    char path[4096];
    struct stat status;
    return path_of(path) && os_stat(path, &status) == 0 && status.st_ino == mapping->inode &&
           status.st_dev == mapping->volume && status.st_size == (off_t)sizeof *mapping->file;
}
