#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"

/* Files up to this size are read whole before their status is sent. */
#define CAT_WHOLE (1u << 20)
#define CAT_PATH_MAX (1u << 20)
/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
#define FILE_FLAGS (O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

int tool_read(int argc, char **argv)
{
    static char buffer[TOOL_BUFFER];
    uint64_t offset = argc > 3 ? tool_number(argv[3], 10, INT64_MAX) : 0;
    uint64_t left = argc > 4 ? tool_number(argv[4], 10, INT64_MAX) : INT64_MAX;
    struct stat st;
    int fd = path_open(tool_root(argv[1]), argv[2], FILE_FLAGS, PATH_LINKS_INSIDE);
    /* ENXIO is what a socket answers. */
    if (fd < 0)
        tool_fail(errno == ENXIO ? EINVAL : errno, errno == ENXIO ? "not a regular file" : NULL);
    if (fstat(fd, &st) < 0)
        tool_fail(errno, NULL);
    if (S_ISDIR(st.st_mode))
        tool_fail(EISDIR, NULL);
    if (!S_ISREG(st.st_mode))
        tool_fail(EINVAL, "not a regular file");
    if (offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0)
        tool_fail(errno, NULL);
    while (left > 0) {
        size_t n = in_some(fd, buffer, left < sizeof buffer ? (size_t)left : sizeof buffer);
        if (n == 0)
            break;
        out_bytes(buffer, n);
        left -= n;
    }
    return 0;
}

static void cat_header(int status, uint64_t size)
{
    out_u8((uint8_t)status);
    out_u64(size);
}

/* Fills buffer from fd; less than size when the file ends before or cannot be read on. */
static size_t fill(int fd, char *buffer, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = read(fd, buffer + have, size - have);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        if (n > 0)
            have += (size_t)n;
    }
    return have;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void cat_file(int fd, const struct stat *before)
{
    static char buffer[CAT_WHOLE];
    uint64_t left = (uint64_t)before->st_size;
    if (left > CAT_WHOLE) {
        cat_header(0, left);
        while (left > 0) {
            size_t want = left < TOOL_BUFFER ? (size_t)left : TOOL_BUFFER;
            size_t have = fill(fd, buffer, want);
            out_bytes(buffer, have);
            left -= have;
            if (have < want)
                break;
        }
        out_zeros(left);
        return;
    }
    struct stat after;
    size_t have = fill(fd, buffer, (size_t)left);
    bool same = have == left && fstat(fd, &after) == 0 && after.st_size == before->st_size &&
                same_time(after.st_mtim, before->st_mtim) && same_time(after.st_ctim, before->st_ctim);
    cat_header(same ? 0 : 4, left);
    out_bytes(buffer, have);
    out_zeros(left - have);
}

static void cat_one(int base, const char *path)
{
    struct stat st;
    int fd = path_open(base, path, FILE_FLAGS | O_NOFOLLOW, PATH_LINKS_NONE);
    if (fd < 0) {
        struct place place;
        bool there = path_place(base, path, false, PATH_LINKS_NONE, &place) == 0;
        bool known = there && fstatat(place.dir, place.name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        cat_header(!known ? 1 : S_ISREG(st.st_mode) ? 3 : 2, 0);
        if (there)
            close(place.dir);
        return;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        cat_header(2, 0);
    else
        cat_file(fd, &st);
    close(fd);
}

int tool_cat(int argc, char **argv)
{
    (void)argc;
    in_paths(tool_directory(argv[1], argv[2]), cat_one);
    return 0;
}
