/*
 * gpucap-install DEST: puts libgpucap.so, which lies beside this program, and what a container
 * needs with it into DEST, an empty volume:
 *
 *   DEST/lib/libgpucap.so   the library
 *   DEST/ld.so.preload      its path as the container sees it
 *   DEST/c0 … DEST/c15      one state folder per container, writable for any user
 *
 * Says in one line what it did, or what was wrong, and then ends with 1. Runs as any user.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY      "libgpucap.so"
#define IN_CONTAINER "/opt/gpu-scheduler/lib/" LIBRARY "\n"
#define CONTAINERS   16
#define PATH_BYTES   4096

static void fail(const char *what, const char *path) {
    fprintf(stderr, "gpucap-install: cannot %s %s: %s\n", what, path, strerror(errno));
    exit(1);
}

__attribute__((format(printf, 2, 3))) static void join(char out[PATH_BYTES], const char *format,
                                                       ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out, PATH_BYTES, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= PATH_BYTES) {
        errno = ENAMETOOLONG;
        fail("use", out);
    }
}

/* The init container may run again over what an earlier run left: a folder that is there is fine, a
 * mode that is already right needs no owner. */
static void make_folder(const char *path, mode_t mode) {
    struct stat status;
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        fail("make the folder", path);
    if (chmod(path, mode) != 0 && (stat(path, &status) != 0 || (status.st_mode & 07777) != mode))
        fail("set the mode of", path);
}

static void write_all(int fd, const char *bytes, size_t count, const char *path) {
    while (count > 0) {
        ssize_t written = write(fd, bytes, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            fail("write", path);
        bytes += written;
        count -= (size_t)written;
    }
}

/* Under another name first: a process never sees half of it. */
static void finish(int fd, mode_t mode, const char *from, const char *to) {
    if (fchmod(fd, mode) != 0)
        fail("set the mode of", from);
    if (close(fd) != 0)
        fail("write", from);
    if (rename(from, to) != 0)
        fail("rename to", to);
}

static int create(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        fail("create", path);
    return fd;
}

static long copy_library(const char *to) {
    char from[PATH_BYTES], fresh[PATH_BYTES], bytes[65536];
    ssize_t length = readlink("/proc/self/exe", from, sizeof from - 1);
    if (length < 0)
        fail("read", "/proc/self/exe");
    from[length] = 0;
    *strrchr(from, '/') = 0;
    char library[PATH_BYTES];
    join(library, "%s/" LIBRARY, from);
    join(fresh, "%s.new", to);
    int in = open(library, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        fail("open", library);
    int out = create(fresh);
    long total = 0;
    while ((length = read(in, bytes, sizeof bytes)) > 0) {
        write_all(out, bytes, (size_t)length, fresh);
        total += length;
    }
    if (length < 0)
        fail("read", library);
    close(in);
    finish(out, 0755, fresh, to);
    return total;
}

int main(int argc, char **argv) {
    char path[PATH_BYTES], fresh[PATH_BYTES];
    if (argc != 2) {
        fprintf(stderr, "usage: gpucap-install DEST\n");
        return 1;
    }
    struct stat status;
    if (stat(argv[1], &status) != 0)
        fail("use", argv[1]);
    join(path, "%s/lib", argv[1]);
    make_folder(path, 0755);
    join(path, "%s/lib/" LIBRARY, argv[1]);
    long bytes = copy_library(path);
    join(path, "%s/ld.so.preload", argv[1]);
    join(fresh, "%s.new", path);
    int fd = create(fresh);
    write_all(fd, IN_CONTAINER, strlen(IN_CONTAINER), fresh);
    finish(fd, 0644, fresh, path);
    for (int i = 0; i < CONTAINERS; i++) {
        join(path, "%s/c%d", argv[1], i);
        make_folder(path, 01777);
    }
    printf("gpucap-install: " LIBRARY " (%ld bytes), ld.so.preload and %d state folders in %s\n",
           bytes, CONTAINERS, argv[1]);
    return 0;
}
