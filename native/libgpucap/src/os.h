/*
 * System calls that glibc wraps in functions newer than the oldest system the library must load on
 * (glibc 2.17): a symbol version that a container's libc lacks would keep every program in it from
 * starting. On both architectures the kernel's struct stat is glibc's.
 */
#ifndef GPUCAP_OS_H
#define GPUCAP_OS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Locks of open file descriptions: the kernel has had them since 3.15, glibc names them since 2.20.
 */
#define OS_OFD_GETLK 36
#define OS_OFD_SETLK 37

static inline int os_stat(const char *path, struct stat *out) {
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

/* Whether an error of os_stat means that nothing is there, and not that it could not be seen. */
static inline bool os_absent(int error) {
    return error == ENOENT || error == ENOTDIR;
}

static inline int os_fstat(int fd, struct stat *out) {
    return (int)syscall(SYS_fstat, fd, out);
}

/* Gives the file's holes room on the disk; 0 too where the file system cannot say. */
static inline int os_allocate(int fd, off_t length) {
    int answer = (int)syscall(SYS_fallocate, fd, 0, (off_t)0, length);
    return answer && (errno == EOPNOTSUPP || errno == ENOSYS) ? 0 : answer;
}

/* Milliseconds of a clock that costs a few nanoseconds and is some milliseconds coarse. */
static inline uint64_t os_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

#endif
