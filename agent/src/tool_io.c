#define _GNU_SOURCE
#include "tool_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "path.h"

void (*tool_cleanup)(void);

static unsigned char out[TOOL_BUFFER];
static size_t out_used;

static const struct {
    int error;
    const char *name;
} names[] = {
#define NAME(e) {e, #e}
    NAME(ECONNREFUSED), NAME(EADDRINUSE), NAME(EPERM),   NAME(ENOENT),  NAME(EINTR),        NAME(EIO),       NAME(ENXIO),  NAME(E2BIG), NAME(EBADF),
    NAME(EAGAIN),  NAME(ENOMEM),  NAME(EACCES),       NAME(EFAULT),    NAME(EBUSY),  NAME(EEXIST), NAME(EXDEV),
    NAME(ENODEV),  NAME(ENOTDIR), NAME(EISDIR),       NAME(EINVAL),    NAME(ENFILE), NAME(EMFILE), NAME(ETXTBSY),
    NAME(EFBIG),   NAME(ENOSPC),  NAME(EROFS),        NAME(EMLINK),    NAME(EPIPE),  NAME(ENAMETOOLONG),
    NAME(ENOSYS),  NAME(ENOTEMPTY), NAME(ELOOP),      NAME(EOVERFLOW), NAME(EDQUOT), NAME(ESTALE),
    NAME(ENOTSUP), NAME(EILSEQ),  NAME(EBADMSG),
#undef NAME
};

static size_t add(char *line, size_t used, size_t cap, const char *text)
{
    for (; *text && used < cap; text++)
        line[used++] = (unsigned char)*text < 32 || *text == 127 ? '?' : *text;
    return used;
}

static _Noreturn void end_with(const char *name, const char *message, const char *detail)
{
    char line[512];
    size_t used = add(line, 0, sizeof line - 1, name);
    used = add(line, used, sizeof line - 1, " ");
    used = add(line, used, sizeof line - 1, message);
    if (detail) {
        used = add(line, used, sizeof line - 1, ": ");
        used = add(line, used, sizeof line - 1, detail);
    }
    line[used++] = '\n';
    if (tool_cleanup)
        tool_cleanup();
    write_all(2, line, used);
    _exit(1);
}

_Noreturn void tool_fail(int error, const char *detail)
{
    const char *name = "EIO";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            name = names[i].name;
    end_with(name, error == ENOENT ? "no such file" : strerror(error), detail);
}

_Noreturn void tool_usage(const char *usage)
{
    end_with("EINVAL", "usage", usage);
}

void *tool_alloc(void *old, size_t size)
{
    void *memory = realloc(old, size ? size : 1);
    if (!memory)
        tool_fail(ENOMEM, NULL);
    return memory;
}

uint64_t tool_number(const char *text, int base, uint64_t max)
{
    uint64_t value = 0;
    if (!*text)
        tool_usage("a number is missing");
    for (; *text; text++) {
        int digit = *text - '0';
        if (digit < 0 || digit >= base || (uint64_t)digit > max || value > (max - (uint64_t)digit) / (uint64_t)base)
            tool_usage("not a number, or too large");
        value = value * (uint64_t)base + (uint64_t)digit;
    }
    return value;
}

char *tool_decimal(uint64_t value)
{
    static char text[24];
    char *at = text + sizeof text - 1;
    do
        *--at = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    return at;
}

const char *tool_fd_path(int fd)
{
    static char path[40] = "/proc/self/fd/";
    strcpy(path + 14, tool_decimal((uint64_t)fd));
    return path;
}

int tool_root(const char *root)
{
    if (root[0] != '/')
        tool_usage("the root is an absolute path");
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        tool_fail(errno, "root");
    return fd;
}

int tool_directory(const char *root, const char *path)
{
    int above = tool_root(root);
    int fd = path_open(above, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, PATH_LINKS_INSIDE);
    if (fd < 0)
        tool_fail(errno, NULL);
    close(above);
    return fd;
}

bool write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n >= 0) {
            at += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

size_t in_some(int fd, void *buffer, size_t size)
{
    for (;;) {
        ssize_t n = read(fd, buffer, size);
        if (n >= 0)
            return (size_t)n;
        if (errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLIN};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            tool_fail(errno, NULL);
        }
    }
}

void out_flush(void)
{
    size_t size = out_used;
    out_used = 0;
    if (!write_all(1, out, size))
        tool_fail(errno, "standard output");
}

void out_bytes(const void *bytes, size_t size)
{
    if (size > sizeof out - out_used)
        out_flush();
    if (size >= sizeof out) {
        if (!write_all(1, bytes, size))
            tool_fail(errno, "standard output");
        return;
    }
    memcpy(out + out_used, bytes, size);
    out_used += size;
}

void out_zeros(uint64_t size)
{
    static char zeros[4096];
    for (; size > sizeof zeros; size -= sizeof zeros)
        out_bytes(zeros, sizeof zeros);
    out_bytes(zeros, (size_t)size);
}

static void out_number(uint64_t value, int bytes)
{
    unsigned char raw[8];
    for (int i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(value >> (8 * i));
    out_bytes(raw, (size_t)bytes);
}

void out_u8(uint8_t value)
{
    out_number(value, 1);
}

void out_u32(uint32_t value)
{
    out_number(value, 4);
}

void out_u64(uint64_t value)
{
    out_number(value, 8);
}

void out_str(const char *text, size_t size)
{
    out_u32((uint32_t)size);
    out_bytes(text, size);
}

uint64_t time_ns(struct timespec time)
{
    return time.tv_sec < 0 ? 0 : (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void out_record(int dir, const char *name, const struct stat *st, const char *path, size_t path_size)
{
    static char target[PATH_LIMIT];
    ssize_t target_size = 0;
    int type = S_ISREG(st->st_mode) ? 1 : S_ISDIR(st->st_mode) ? 2 : S_ISLNK(st->st_mode) ? 3 : 4;
    if (type == 3 && (target_size = readlinkat(dir, name, target, sizeof target)) < 0)
        target_size = 0;
    out_u8((uint8_t)type);
    out_u32(st->st_mode & 07777);
    out_u32(st->st_uid);
    out_u32(st->st_gid);
    out_u64(type == 1 || type == 3 ? (uint64_t)st->st_size : 0);
    out_u64(time_ns(st->st_mtim));
    out_u64(time_ns(st->st_ctim));
    out_u64(st->st_ino);
    out_str(path, path_size);
    out_str(target, (size_t)target_size);
}
