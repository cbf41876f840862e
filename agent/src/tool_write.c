#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "path.h"
#include "tool_io.h"

/* The temporary file beside the target, while it has a name. */
static struct place temporary = {.dir = -1};
static volatile sig_atomic_t named;

static void unlink_temporary(void)
{
    if (named)
        unlinkat(temporary.dir, temporary.name, 0);
    named = 0;
}

static void on_signal(int signal)
{
    unlink_temporary();
    _exit(128 + signal);
}

static void new_name(void)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz012345";
    unsigned char random[12];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        tool_fail(errno, NULL);
    memcpy(temporary.name, ".aido-", 6);
    for (size_t i = 0; i < sizeof random; i++)
        temporary.name[6 + i] = digits[random[i] & 31];
    temporary.name[6 + sizeof random] = '\0';
}

static int open_named(void)
{
    new_name();
    named = 1;
    int fd = openat(temporary.dir, temporary.name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        tool_fail(errno, NULL);
    return fd;
}

static void copy(int from, int to)
{
    static char buffer[TOOL_BUFFER];
    size_t n;
    while ((n = in_some(from, buffer, sizeof buffer)) > 0)
        if (!write_all(to, buffer, n))
            tool_fail(errno, NULL);
}

static bool link_file(int fd, const char *name)
{
    if (linkat(fd, "", temporary.dir, name, AT_EMPTY_PATH) == 0)
        return true;
    if (errno == EEXIST)
        return false;
    return linkat(AT_FDCWD, tool_fd_path(fd), temporary.dir, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Gives the nameless file a name beside the target; where links to it cannot be made, its bytes are copied. */
static int name_file(int fd, mode_t mode)
{
    new_name();
    named = 1;
    if (link_file(fd, temporary.name))
        return fd;
    named = 0;
    int copied = open_named();
    if (lseek(fd, 0, SEEK_SET) < 0)
        tool_fail(errno, NULL);
    copy(fd, copied);
    if (fchmod(copied, mode) < 0)
        tool_fail(errno, NULL);
    return copied;
}

static int replace(const struct place *target, mode_t mode)
{
    struct sigaction action = {.sa_handler = on_signal};
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXFSZ, SIGXCPU};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    temporary.dir = target->dir;
    tool_cleanup = unlink_temporary;
    /* A file without a name is gone with its process, whatever ends that. Not every file system has them. */
    int fd = path_old_kernel() ? -1 : openat(target->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    bool nameless = fd >= 0;
    if (!nameless)
        fd = open_named();
    copy(0, fd);
    if (fchmod(fd, mode) < 0)
        tool_fail(errno, NULL);
    if (nameless)
        fd = name_file(fd, mode);
    if (renameat(temporary.dir, temporary.name, target->dir, target->name) < 0)
        tool_fail(errno, NULL);
    named = 0;
    return 0;
}

static int append(const struct place *target, mode_t mode)
{
    struct stat st;
    int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(target->dir, target->name, flags | O_CREAT, mode);
    if (fd < 0)
        tool_fail(errno == ENXIO ? EINVAL : errno, NULL);
    if (fstat(fd, &st) < 0)
        tool_fail(errno, NULL);
    if (!S_ISREG(st.st_mode))
        tool_fail(EINVAL, "not a regular file");
    copy(0, fd);
    return 0;
}

int tool_write(int argc, char **argv)
{
    bool keep = strcmp(argv[3], "-") == 0;
    mode_t mode = keep ? 0644 : (mode_t)tool_number(argv[3], 8, 07777);
    if (argc > 4 && strcmp(argv[4], "append") != 0)
        tool_usage("write root path mode|- [append]");
    struct place target;
    struct stat st;
    if (path_target(tool_root(argv[1]), argv[2], true, &target) < 0)
        tool_fail(errno, NULL);
    if (!target.name[0])
        tool_fail(EISDIR, NULL);
    if (fstatat(target.dir, target.name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(st.st_mode))
            tool_fail(EISDIR, NULL);
        if (!S_ISREG(st.st_mode))
            tool_fail(EINVAL, "not a regular file");
        if (keep)
            mode = st.st_mode & 07777;
    }
    return argc > 4 ? append(&target, mode) : replace(&target, mode);
}
