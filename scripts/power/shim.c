// Preloaded into the writer: makes one system call fail from its k-th time on.
//
//   SHIM_CALL   pwrite64, fdatasync, fsync, fallocate64, ftruncate64, rename, unlink or
//               open64
//   SHIM_AT     k, from 1
//   SHIM_TIMES  how often from then on
//   SHIM_ERROR  short (half of the bytes), zero (none), lie (success, and nothing done), or the
//               name of an errno
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static int code(const char *name) {
    static const struct { const char *name; int code; } codes[] = {
        {"EINTR", EINTR}, {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},
        {"EFBIG", EFBIG}, {"EOPNOTSUPP", EOPNOTSUPP},
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (strcmp(codes[i].name, name) == 0) return codes[i].code;
    return EIO;
}

// The error to fail with: 0 none, -1 short, -2 zero, -3 lie.
static int strikes(const char *call) {
    const char *wanted = getenv("SHIM_CALL"), *at = getenv("SHIM_AT");
    const char *times = getenv("SHIM_TIMES"), *error = getenv("SHIM_ERROR");
    if (!wanted || !at || !times || !error || strcmp(wanted, call) != 0) return 0;
    long call_number = atomic_fetch_add(&calls, 1) + 1;
    if (call_number < atol(at) || call_number >= atol(at) + atol(times)) return 0;
    static const char fired[] = "shim: fired\n";
    if (write(2, fired, sizeof fired - 1) < 0) return 0;
    if (strcmp(error, "short") == 0) return -1;
    if (strcmp(error, "zero") == 0) return -2;
    if (strcmp(error, "lie") == 0) return -3;
    return code(error);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(error) if ((error) > 0) { errno = (error); return -1; }

ssize_t pwrite64(int fd, const void *buf, size_t count, off64_t offset) {
    int error = strikes("pwrite64");
    FAIL_IF(error);
    if (error == -2) return 0;
    if (error == -1 && count > 1) count /= 2;
    return REAL(pwrite64)(fd, buf, count, offset);
}

int fdatasync(int fd) {
    int error = strikes("fdatasync");
    FAIL_IF(error);
    if (error == -3) return 0;
    return REAL(fdatasync)(fd);
}

int fsync(int fd) {
    int error = strikes("fsync");
    FAIL_IF(error);
    return REAL(fsync)(fd);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len) {
    int error = strikes("fallocate64");
    FAIL_IF(error);
    return REAL(fallocate64)(fd, mode, offset, len);
}

int ftruncate64(int fd, off64_t len) {
    int error = strikes("ftruncate64");
    FAIL_IF(error);
    return REAL(ftruncate64)(fd, len);
}

int rename(const char *from, const char *to) {
    int error = strikes("rename");
    FAIL_IF(error);
    return REAL(rename)(from, to);
}

int unlink(const char *path) {
    int error = strikes("unlink");
    FAIL_IF(error);
    return REAL(unlink)(path);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    // Only the log's files, not the system's.
    int error = strstr(path, "/log") ? strikes("open64") : 0;
    FAIL_IF(error);
    return REAL(open64)(path, flags, mode);
}
