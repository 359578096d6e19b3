#include "log.h"

#include "lock.h"
#include "os.h"
#include "settings.h"

#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_FILE  "libgpucap.log"
#define LOG_BYTES 65536 /* a file beyond this takes no more lines */

const char *state_folder(void) {
    const char *folder = settings_override("GPUCAP_STATE_DIR");
    return folder ? folder : "/opt/gpu-scheduler/state";
}

static struct lock lock; /* of everything below; what is large is static: stacks may be small */

static bool said_in_file(int fd, const char *message) {
    static char text[LOG_BYTES + 1];
    ssize_t length = pread(fd, text, LOG_BYTES, 0);
    if (length == LOG_BYTES)
        return true;
    text[length > 0 ? length : 0] = 0;
    return strstr(text, message) != NULL;
}

/* false: there should have been a line and there is none. */
static bool append(const char *message) {
    static char path[4096], line[640];
    if ((size_t)snprintf(path, sizeof path, "%s/" LOG_FILE, state_folder()) >= sizeof path)
        return true;
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0)
        return os_absent(errno) && !settings_managed();
    bool written = true;
    if (!said_in_file(fd, message)) {
        fchmod(fd, 0666); /* whatever the umask: the container's other users write here too */
        char when[32];
        time_t now = time(NULL);
        struct tm utc;
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
        int length = snprintf(line, sizeof line, "%s [%d] %s\n", when, (int)getpid(), message);
        written = length <= 0 || write(fd, line, (size_t)length) >= 0;
    }
    close(fd);
    return written;
}

/* Something that only text goes to: where a program closed its stderr the number may be that of a
 * file with data, or of a connection. It must take the line at once, and not by SIGPIPE. */
static bool takes_text(int fd) {
    struct stat status;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (os_fstat(fd, &status) != 0 || poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT)
        return false;
    return S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode) ||
           (S_ISREG(status.st_mode) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY);
}

/* The program's own, so this is the last resort: memory is refused, and nothing else says why. */
static void say(const char *message) {
    static char line[640];
    int length = snprintf(line, sizeof line, "libgpucap: %s\n", message);
    if (length > 0 && takes_text(STDERR_FILENO) && write(STDERR_FILENO, line, (size_t)length) < 0) {
        /* Nothing to do: what cannot be said must not disturb the program. */
    }
}

void log_once(const char *format, ...) {
    static char message[512];
    static uint32_t said[32]; /* hashes of the messages of this process */
    static unsigned count;
    int kept_errno = errno;
    va_list arguments;
    lock_take(&lock);
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uint32_t hash = 5381;
    for (const char *c = message; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    unsigned i = 0;
    while (i < count && said[i] != hash)
        i++;
    if (i == count && count < sizeof said / sizeof *said) {
        said[count++] = hash;
        if (!append(message))
            say(message);
    }
    lock_free(&lock);
    errno = kept_errno;
}

void log_forget(void) {
    lock = (struct lock){0};
}
