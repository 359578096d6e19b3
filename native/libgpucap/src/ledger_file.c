#include "ledger_file.h"

#include "fault.h"
#include "log.h"
#include "os.h"
#include "resolve.h"
#include "settings.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

/* The time of a wait is counted in short waits of its own: a machine, or a container, that is
 * paused as a whole wakes up in the middle of one and not after the last. */
#define WAIT_MILLISECONDS 100
#define WAITS             50
#define WAITS_IMPATIENT   1
#define MAKER_WAITS       1000 /* of a millisecond each, for whoever makes the file */

/* libc's pthread functions, found at first use: before glibc 2.34 they are in libpthread, which the
 * library does not depend on and every program with CUDA has loaded. */
static struct {
    _Atomic(bool) known;
    int (*init)(pthread_mutex_t *, const pthread_mutexattr_t *);
    int (*trylock)(pthread_mutex_t *);
    int (*timedlock)(pthread_mutex_t *, const struct timespec *);
    int (*clocklock)(pthread_mutex_t *, clockid_t, const struct timespec *); /* glibc 2.30 */
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
    *(void **)&threads.clocklock = resolve_libc("pthread_mutex_clocklock");
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

static int wait_for(pthread_mutex_t *mutex) {
    struct timespec until;
    clockid_t clock = threads.clocklock ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    clock_gettime(clock, &until);
    until.tv_nsec += WAIT_MILLISECONDS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return threads.clocklock ? threads.clocklock(mutex, clock, &until)
                             : threads.timedlock(mutex, &until);
}

bool ledger_lock(struct ledger_file *file, bool impatient) {
    pthread_mutex_t *mutex = &file->header.mutex;
    int error = threads.trylock(mutex);
    if (error == EBUSY)
        error = ETIMEDOUT;
    for (int i = impatient ? WAITS - WAITS_IMPATIENT : 0; i < WAITS && error == ETIMEDOUT; i++)
        error = wait_for(mutex);
    if (error == EOWNERDEAD) {
        /* The holder died. Every field is one aligned word and the dead process's slot is reaped by
         * whoever needs its memory: there is nothing to repair but the sums. */
        file->header.unsummed = 1;
        FAULT(recover);
        error = threads.consistent(mutex);
    }
    if (error)
        log_once("ledger: its lock cannot be taken (error %d): memory is refused until it can",
                 error);
    return error == 0;
}

void ledger_unlock(struct ledger_file *file) {
    threads.unlock(&file->header.mutex);
}

/* Paths are built here and not on the stack, of which a thread may have little: all that is below
 * is called by one thread at a time (account.c). */
static const char *path_of(const char *name) {
    static char path[4096];
    return (size_t)snprintf(path, sizeof path, "%s/%s", state_folder(), name) < sizeof path ? path
                                                                                            : "";
}

static void complain(const char *reason, int error) {
    log_once("ledger: %s: %s (error %d): memory is refused until it can be used",
             path_of(LEDGER_FILE), reason, error);
}

static struct ledger_file *map(int fd) {
    void *file = mmap(NULL, sizeof(struct ledger_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return file == MAP_FAILED ? NULL : file;
}

static bool write_zeros(int fd) {
    static const char zeros[4096];
    for (off_t at = 0; at < (off_t)sizeof(struct ledger_file); at += sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, at) != sizeof zeros)
            return false;
    return true;
}

/* It is written, not merely sized: on a full disk the error comes here and not as a signal when a
 * page is first touched. */
static bool fill(int fd) {
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
    memcpy(header->magic, LEDGER_MAGIC, sizeof header->magic);
    header->version = LEDGER_VERSION;
    header->header_bytes = sizeof *header;
    header->slot_bytes = sizeof(struct ledger_slot);
    header->slot_count = LEDGER_SLOTS;
    header->device_count = LEDGER_DEVICES;
    header->mutex_bytes = sizeof(pthread_mutex_t);
    header->keeps_marks = 1;
    munmap(file, sizeof *file);
    FAULT(make_header);
    return true;
}

/* A new ledger under the name of the old one, under the lock on the folder: whoever is killed on
 * the way leaves a file that nobody reads. Its descriptor; -1: the log says why. */
static int make(int folder) {
    /* In a folder that all may write to, one user cannot remove what another has left. */
    char name[40];
    snprintf(name, sizeof name, LEDGER_FILE ".%u.new", (unsigned)geteuid());
    unlinkat(folder, name, 0);
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 || !fill(fd) || renameat(folder, name, folder, LEDGER_FILE) != 0) {
        int error = errno;
        unlinkat(folder, name, 0); /* not to keep what little room there is, for the log */
        if (fd >= 0)
            close(fd);
        fd = -1;
        complain("it cannot be written", error);
    }
    FAULT(make_done);
    return fd;
}

/* Why the file is no ledger; NULL: it is one. */
static const char *fault_of(int fd) {
    static struct ledger_header header; /* too large for some stacks */
    struct stat status;
    if (os_fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return "it is not a regular file";
    memset(&header, 0, offsetof(struct ledger_header, device));
    if (pread(fd, &header, offsetof(struct ledger_header, device), 0) < 0)
        return "it cannot be read";
    if (memcmp(header.magic, LEDGER_MAGIC, sizeof header.magic) != 0)
        return "it is not a ledger";
    if (header.version != LEDGER_VERSION || header.header_bytes != sizeof header ||
        header.slot_bytes != sizeof(struct ledger_slot) || header.slot_count != LEDGER_SLOTS ||
        header.device_count != LEDGER_DEVICES || header.mutex_bytes != sizeof(pthread_mutex_t))
        return "it is of another version";
    return status.st_size == (off_t)sizeof(struct ledger_file) ? NULL : "it is truncated";
}

/* The ledger that is there; -1 with a reason: something else is; -1 without: nothing is there, or
 * it cannot be told, and errno says why. */
static int open_whole(const char **fault) {
    const char *path = path_of(LEDGER_FILE);
    *fault = NULL;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
        *fault = "it is not a regular file";
    if (fd < 0 || !(*fault = fault_of(fd)))
        return fd;
    close(fd);
    return -1;
}

/* The lock of those who make the file, on its folder. It may be held by somebody who is stopped. */
static bool lock_folder(int folder) {
    static const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < MAKER_WAITS; i++) {
        if (flock(folder, LOCK_EX | LOCK_NB) == 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* The ledger, made if need be; `dead`: one that is to be replaced all the same. */
static int open_or_make(int folder, const struct ledger_mapping *dead) {
    const char *fault;
    struct stat status;
    if (!lock_folder(folder)) {
        complain("somebody has been making it for a second", EBUSY);
        return -1;
    }
    int fd = open_whole(&fault); /* somebody else may have made it in the meantime */
    if (fd >= 0 && dead && os_fstat(fd, &status) == 0 && status.st_ino == dead->inode &&
        status.st_dev == dead->volume) {
        close(fd);
        fd = -1;
        fault = "its lock is taken, and nobody who lives uses it";
    }
    if (fd < 0 && (fault || os_absent(errno))) {
        fd = make(folder);
        if (fault && fd >= 0)
            log_once("ledger: %s: %s: it was made anew", path_of(LEDGER_FILE), fault);
    } else if (fd < 0) {
        complain("it cannot be opened", errno);
    }
    flock(folder, LOCK_UN);
    return fd;
}

enum ledger_answer ledger_open(struct ledger_mapping *out) {
    const char *fault;
    struct stat status;
    *out = (struct ledger_mapping){.descriptor = -1};
    if (!find_threads()) {
        complain("libc has no robust mutexes", ENOSYS);
        return LEDGER_AWAY;
    }
    int fd = open_whole(&fault);
    if (fd < 0) {
        int folder = open(state_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) {
            if (os_absent(errno) && !settings_managed())
                return LEDGER_NOWHERE;
            complain("its folder cannot be opened", errno);
            return LEDGER_AWAY;
        }
        fd = open_or_make(folder, NULL);
        close(folder);
    }
    if (fd < 0)
        return LEDGER_AWAY;
    /* A page without room on a full disk would end the process when it is first touched. */
    bool room = os_allocate(fd, sizeof *out->file) == 0;
    if (!room || os_fstat(fd, &status) != 0 || !(out->file = map(fd))) {
        complain(room ? "it cannot be mapped" : "there is no room for all of it", errno);
        close(fd);
        return LEDGER_AWAY;
    }
    out->volume = status.st_dev;
    out->inode = status.st_ino;
    out->blocks = status.st_blocks;
    out->descriptor = fd;
    return LEDGER_USABLE;
}

static bool is_ours(const struct ledger_mapping *mapping, const struct stat *status) {
    return status->st_ino == mapping->inode && status->st_dev == mapping->volume;
}

void ledger_leave_open(struct ledger_mapping *mapping) {
    if (mapping->file)
        munmap(mapping->file, sizeof *mapping->file);
    *mapping = (struct ledger_mapping){.descriptor = -1};
}

void ledger_close(struct ledger_mapping *mapping) {
    struct stat status;
    /* Only if it is still ours: programs close and reuse descriptors they do not know. */
    if (mapping->file && os_fstat(mapping->descriptor, &status) == 0 && is_ours(mapping, &status))
        close(mapping->descriptor);
    ledger_leave_open(mapping);
}

bool ledger_is_current(const struct ledger_mapping *mapping) {
    struct stat status;
    return os_stat(path_of(LEDGER_FILE), &status) == 0 && is_ours(mapping, &status) &&
           status.st_size == (off_t)sizeof *mapping->file && status.st_blocks >= mapping->blocks;
}

bool ledger_reopened(struct ledger_mapping *mapping) {
    struct stat status;
    if (os_fstat(mapping->descriptor, &status) == 0 && is_ours(mapping, &status))
        return false;
    mapping->descriptor = open(path_of(LEDGER_FILE), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    return mapping->descriptor >= 0;
}

bool ledger_replace_dead(const struct ledger_mapping *mapping) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = LEDGER_SLOTS};
    if (fcntl(mapping->descriptor, OS_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK)
        return false; /* somebody else has a slot */
    int folder = open(state_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return false;
    int fd = open_or_make(folder, mapping);
    close(folder);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}
